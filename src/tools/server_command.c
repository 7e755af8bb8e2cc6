/* `horkos server`: one node. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "server/config.h"
#include "server/server.h"
#include "tools/commands.h"
#include "tools/server_options.h"

static void print_line(void *context, const char *text)
{
    (void)context;
    puts(text);
}

static int serve(const struct server_command_options *options, struct config *config)
{
    char error[1024];
    if (config_read(options->config, config, error, sizeof error) != HK_OK) {
        fprintf(stderr, "horkos server: %s\n", error);
        return STATUS_FAILED;
    }
    if (options->check) {
        printf("%s: good\n", options->config);
        return STATUS_OK;
    }
    struct server_options server = {.bootstrap = options->bootstrap, .ready_fd = -1};
    return server_run(config, &server);
}

int server_command(int argc, char **argv)
{
    struct server_command_options options;
    bool help = false;
    int status = server_options_parse(argc, argv, &options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    if (options.document) {
        config_document(print_line, NULL);
        return STATUS_OK;
    }
    struct config *config = calloc(1, sizeof *config);
    if (config == NULL) {
        perror("horkos server");
        return STATUS_FAILED;
    }
    status = serve(&options, config);
    free(config);
    return status;
}
