/* `horkos status`: see ask_options.c for its command line. */
#include <stdio.h>

#include "tools/ask_options.h"
#include "tools/commands.h"
#include "tools/node_report.h"

#define ANSWER_MS 5000u

static int explain(enum node_report_result result, const char *why)
{
    const char *what_to_do = "";
    if (result == NODE_REPORT_UNREACHABLE) {
        what_to_do = "is a node running there? --port and --host name another one";
    } else if (result == NODE_REPORT_DENIED) {
        what_to_do = "give --password-file, and --user unless it is for user default";
    } else {
        what_to_do = "--port and --host name another one";
    }
    fprintf(stderr, "horkos status: %s; %s\n", why, what_to_do);
    return STATUS_USAGE;
}

int status_command(int argc, char **argv)
{
    struct ask_options options;
    struct node_report report;
    char why[400];
    bool help = false;
    int status = ask_options_parse(ASK_STATUS, argc, argv, &options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    enum node_report_result result =
        node_report_fetch(&options.address, ANSWER_MS, &report, why, sizeof why);
    if (result != NODE_REPORT_OK) {
        return explain(result, why);
    }
    if (options.json) {
        json_dumpf(report.json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
        fputc('\n', stdout);
    } else {
        node_report_print(&report, stdout);
    }
    status = report.can_serve ? STATUS_OK : STATUS_FAILED;
    node_report_deinit(&report);
    return status;
}
