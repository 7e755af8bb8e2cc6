/* What a node says about the hash slots of its spaces: HORKOS SLOTS, fetched, read and printed. */
#ifndef HORKOS_TOOLS_SLOTS_REPORT_H
#define HORKOS_TOOLS_SLOTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/bytes.h"
#include "tools/node_report.h"

struct slots_report {
    int64_t node; /* id; -1: not said */
    /* Of all its spaces together. */
    uint64_t lost, emptying, moving, none;
    json_t *json; /* all of it; NULL: nothing */
};

/* Reads the JSON that a node answers; false, and an empty report, if it makes no sense. */
bool slots_report_parse(struct bytes text, struct slots_report *report_out);
void slots_report_deinit(struct slots_report *report);

/* Asks a node on a new connection about one space (SPACES_MAX: all). Unless NODE_REPORT_OK, why_out
 * (size bytes) says why in words and report_out is empty. */
enum node_report_result slots_report_fetch(const struct node_address *address, uint32_t space,
                                           uint32_t timeout_ms, struct slots_report *report_out,
                                           char *why_out, uint32_t size);

/* As tables for people. What came from outside cannot steer a terminal. */
void slots_report_print(const struct slots_report *report, FILE *to);

/* The spaces in which slots are lost: bit n for space n. */
uint32_t slots_report_lost_spaces(const struct slots_report *report);

#endif
