/* `horkos recover`: see ask_options.c for its command line, docs/protocols/view.md, "Recover", for
 * what a node does with the order. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "tools/ask_node.h"
#include "tools/ask_options.h"
#include "tools/commands.h"
#include "tools/node_report.h"

#define POLL_MS 50u

/* Prints "1, 2". */
static void print_ids(nodeset nodes, FILE *to)
{
    for (const char *before = ""; nodes != 0; nodes &= nodes - 1) {
        fprintf(to, "%s%u", before, nodeset_first(nodes));
        before = ", ";
    }
}

/* The nodes that the report lists; only those that its view has as members, or all. */
static nodeset nodes_of(const struct node_report *report, bool members_only)
{
    nodeset members = 0;
    size_t i = 0;
    const json_t *member = NULL;
    json_array_foreach(json_object_get(report->json, "members"), i, member)
    {
        json_int_t id = json_integer_value(json_object_get(member, "id"));
        bool live = json_is_true(json_object_get(member, "live"));
        if ((live || !members_only) && id >= 0 && id < (json_int_t)NODES_MAX) {
            members |= nodeset_of((uint8_t)id);
        }
    }
    return members;
}

static void explain(const struct node_report *report, nodeset survivors)
{
    nodeset left_out = nodes_of(report, true) & ~survivors;
    printf("Recover makes a new cluster of node%s ", nodeset_count(survivors) == 1 ? "" : "s");
    print_ids(survivors, stdout);
    printf(", from what %s.\n\n", nodeset_count(survivors) == 1 ? "it holds" : "they hold");
    node_report_print(report, stdout);
    printf(
        "\nWhat can be lost:\n"
        "- Writes that were acknowledged after the other nodes had gone on without these: if a\n"
        "  later view was decided that none of the named nodes has heard of, all that was\n"
        "  written in it is lost, deletes and expiries included, and older values come back.\n"
        "- Of writes that were not acknowledged when the majority was lost, each may be done or\n"
        "  not.\n"
        "What is kept: every write that was acknowledged in a view of which a named node was an\n"
        "operational member, and that no later write has replaced.\n\n"
        "It must not be done while the other nodes live, paused or cut off: two clusters would\n"
        "then take writes, and what the others took is thrown away when they hear of this one.\n");
    if (left_out != 0) {
        printf("You say that these members are lost for good: node%s ",
               nodeset_count(left_out) == 1 ? "" : "s");
        print_ids(left_out, stdout);
        printf(".\n");
    }
    printf(
        "If they can be brought back with their memory (a pause, a network), do that instead.\n");
    fflush(stdout);
}

static int give_order(const struct ask_options *options, nodeset survivors)
{
    struct bytes args[2 + NODES_MAX] = {bytes_of("HORKOS", 6), bytes_of("RECOVER", 7)};
    char ids[NODES_MAX][4];
    uint32_t n = 2;
    for (; survivors != 0; survivors &= survivors - 1) {
        char *id = ids[n - 2];
        int length = snprintf(id, sizeof ids[0], "%u", nodeset_first(survivors));
        args[n++] = bytes_of(id, (uint32_t)length);
    }
    return ask_order("recover", &options->address, n, args);
}

/* Waits until the node serves, and prints how it is then, or when the time is up. */
static int wait_until_it_serves(const struct ask_options *options)
{
    uint64_t end_us = clock_boot_us() + (uint64_t)options->wait_s * 1000000;
    const struct timespec pause = {.tv_nsec = (long)POLL_MS * 1000000};
    for (;;) {
        struct node_report report;
        char why[400];
        enum node_report_result result =
            node_report_fetch(&options->address, ASK_ANSWER_MS, &report, why, sizeof why);
        bool serves = result == NODE_REPORT_OK && report.can_serve;
        if (serves || clock_boot_us() >= end_us) {
            if (!serves) {
                fprintf(stderr,
                        "horkos recover: after %u s the node does not serve. All that were named "
                        "must run, reach\neach other and hold what they held: do not name a node "
                        "that was "
                        "started again. An order that cannot be carried out is "
                        "forgotten after 20 leases, and can be given again\n",
                        options->wait_s);
            }
            printf("\n");
            if (result == NODE_REPORT_OK) {
                node_report_print(&report, stdout);
            } else {
                fprintf(stderr, "horkos recover: %s\n", why);
            }
            node_report_deinit(&report);
            return serves ? STATUS_OK : STATUS_FAILED;
        }
        node_report_deinit(&report);
        nanosleep(&pause, NULL);
    }
}

/* The status of a node that can be told to recover: STATUS_OK. */
static int recoverable(const struct node_report *report, nodeset survivors)
{
    if (report->can_serve) {
        fprintf(stderr, "horkos recover: the node serves: a majority lives, and there is nothing "
                        "to recover\n");
        return STATUS_FAILED;
    }
    if (survivors == 0) {
        fprintf(stderr, "horkos recover: name the nodes that are left\n");
        return STATUS_USAGE;
    }
    nodeset known = nodes_of(report, false);
    if ((survivors & ~known) != 0) {
        fprintf(stderr, "horkos recover: node ");
        print_ids(survivors & ~known, stderr);
        fprintf(stderr, " is not in the cluster; its nodes are ");
        print_ids(known, stderr);
        fprintf(stderr, "\n");
        return STATUS_USAGE;
    }
    if (report->node >= 0 && !nodeset_has(survivors, (uint8_t)report->node)) {
        fprintf(stderr, "horkos recover: node %u, which is asked, must be one of those left\n",
                (unsigned)report->node);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

int recover_command(int argc, char **argv)
{
    struct ask_options options;
    struct node_report report;
    char why[400];
    bool help = false;
    int status = ask_options_parse(ASK_RECOVER, argc, argv, &options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    enum node_report_result result =
        node_report_fetch(&options.address, ASK_ANSWER_MS, &report, why, sizeof why);
    if (result != NODE_REPORT_OK) {
        return ask_unreachable("recover", result, why);
    }
    nodeset survivors = options.survivors;
    if (survivors == 0 && report.node >= 0 && report.node < (int64_t)NODES_MAX) {
        survivors = nodeset_of((uint8_t)report.node);
    }
    status = recoverable(&report, survivors);
    if (status == STATUS_OK) {
        explain(&report, survivors);
        status = ask_confirm("recover", options.yes);
    }
    node_report_deinit(&report);
    if (status == STATUS_OK) {
        status = give_order(&options, survivors);
    }
    return status == STATUS_OK ? wait_until_it_serves(&options) : status;
}
