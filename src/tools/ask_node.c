#include "tools/ask_node.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "tools/commands.h"

int ask_confirm(const char *name, bool yes)
{
    char answer[16];
    if (yes) {
        return STATUS_OK;
    }
    if (!isatty(STDIN_FILENO)) {
        fprintf(stderr, "horkos %s: nothing was done; --yes goes on without asking\n", name);
        return STATUS_USAGE;
    }
    printf("\nType yes to go on: ");
    fflush(stdout);
    if (fgets(answer, sizeof answer, stdin) == NULL || strcmp(answer, "yes\n") != 0) {
        printf("nothing was done\n");
        return STATUS_FAILED;
    }
    return STATUS_OK;
}

int ask_unreachable(const char *name, enum node_report_result result, const char *why)
{
    fprintf(stderr, "horkos %s: %s%s\n", name, why,
            result == NODE_REPORT_DENIED ? "; give --password-file" : "");
    return STATUS_USAGE;
}

int ask_order(const char *name, const struct node_address *address, uint32_t n,
              const struct bytes *args)
{
    char why[400];
    struct resp_client client;
    struct resp_client_reply reply;
    resp_client_init(&client);
    int status = STATUS_OK;
    enum node_report_result result = node_connect(&client, address, ASK_ANSWER_MS, why, sizeof why);
    if (result != NODE_REPORT_OK) {
        status = ask_unreachable(name, result, why);
    } else if (resp_client_call(&client, n, args, ASK_ANSWER_MS, &reply) != HK_OK) {
        fprintf(stderr, "horkos %s: %s; the order may have been taken\n", name, client.why);
        status = STATUS_FAILED;
    } else if (reply.kind == RESP_CLIENT_ERROR) {
        node_error_text(reply.text, why, sizeof why);
        fprintf(stderr, "horkos %s: the node refuses: %s\n", name, why);
        status = STATUS_FAILED;
    }
    resp_client_deinit(&client);
    return status;
}
