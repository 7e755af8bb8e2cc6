/* `horkos slots`: see ask_options.c for its command line, docs/GALENE.md for what slots are. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/node.h"
#include "tools/ask_node.h"
#include "tools/ask_options.h"
#include "tools/commands.h"
#include "tools/slots_report.h"

#define POLL_MS 100u

static int status_of(const struct slots_report *report)
{
    return report->lost + report->emptying + report->none == 0 ? STATUS_OK : STATUS_FAILED;
}

static void explain(const struct slots_report *report)
{
    slots_report_print(report, stdout);
    printf("\nEmptying gives up what the lost slots held: their keys are gone on all nodes, also\n"
           "those that are still cached and readable now. Then each slot gets a home, and its\n"
           "keys can be written and read again, as absent at first.\n"
           "If the node that had them is only paused or cut off, it has lost them all the same:\n"
           "it comes back empty.\n");
    fflush(stdout);
}

/* Waits until no slot is lost or being emptied, with a line whenever something changes. */
static int wait_until_empty(const struct ask_options *options)
{
    uint64_t end_us = clock_boot_us() + (uint64_t)options->wait_s * 1000000;
    const struct timespec pause = {.tv_nsec = (long)POLL_MS * 1000000};
    uint64_t told = UINT64_MAX;
    for (;;) {
        struct slots_report report;
        char why[400];
        enum node_report_result result = slots_report_fetch(
            &options->address, options->space, ASK_ANSWER_MS, &report, why, sizeof why);
        uint64_t left = report.lost + report.emptying;
        bool done = result == NODE_REPORT_OK && left == 0;
        if (result == NODE_REPORT_OK && left != told) {
            printf("%" PRIu64 " slots left\n", left);
            fflush(stdout);
            told = left;
        }
        if (done || clock_boot_us() >= end_us) {
            if (result != NODE_REPORT_OK) {
                fprintf(stderr, "horkos slots: %s\n", why);
            } else if (done) {
                printf("\n");
                slots_report_print(&report, stdout);
            } else {
                fprintf(stderr,
                        "horkos slots: after %u s it is not done. Every member has to take part; "
                        "if one leaves or dies\nmeanwhile the order is forgotten: give it again\n",
                        options->wait_s);
            }
            slots_report_deinit(&report);
            return done ? STATUS_OK : STATUS_FAILED;
        }
        slots_report_deinit(&report);
        nanosleep(&pause, NULL);
    }
}

static int empty_lost(const struct ask_options *options, const struct slots_report *report)
{
    uint32_t lost = slots_report_lost_spaces(report);
    if (lost == 0) {
        printf("no slot is lost: nothing to do\n");
        return STATUS_OK;
    }
    explain(report);
    int status = ask_confirm("slots", options->yes);
    for (uint32_t space = 0; status == STATUS_OK && space < SPACES_MAX; space++) {
        if ((lost >> space & 1) != 0) {
            char number[8];
            struct bytes args[3] = {
                bytes_of("HORKOS", 6), bytes_of("EMPTY-LOST", 10),
                bytes_of(number, (uint32_t)snprintf(number, sizeof number, "%u", space))};
            status = ask_order("slots", &options->address, 3, args);
        }
    }
    return status == STATUS_OK ? wait_until_empty(options) : status;
}

int slots_command(int argc, char **argv)
{
    struct ask_options options;
    struct slots_report report;
    char why[400];
    bool help = false;
    int status = ask_options_parse(ASK_SLOTS, argc, argv, &options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    enum node_report_result result = slots_report_fetch(&options.address, options.space,
                                                        ASK_ANSWER_MS, &report, why, sizeof why);
    if (result != NODE_REPORT_OK) {
        return ask_unreachable("slots", result, why);
    }
    if (options.empty_lost) {
        status = empty_lost(&options, &report);
    } else {
        status = status_of(&report);
        if (options.json) {
            json_dumpf(report.json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
            fputc('\n', stdout);
        } else {
            slots_report_print(&report, stdout);
        }
    }
    slots_report_deinit(&report);
    return status;
}
