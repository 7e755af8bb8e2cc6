/* What a node says about itself: HORKOS STATUS, fetched, read and printed. The commands `status`,
 * `recover` and `dev` share it. */
#ifndef HORKOS_TOOLS_NODE_REPORT_H
#define HORKOS_TOOLS_NODE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/bytes.h"
#include "tools/resp_client.h"

/* Where a node's clients connect, and as whom. */
struct node_address {
    struct resp_client_target target;
    const char *user;     /* NULL: "default" */
    const char *password; /* NULL: none */
};

enum node_report_result {
    NODE_REPORT_OK,
    NODE_REPORT_UNREACHABLE, /* nobody answers there */
    NODE_REPORT_DENIED,      /* it wants a password, or another one */
    NODE_REPORT_STRANGER,    /* something answers that is no node of horkos */
};

struct node_report {
    bool can_serve;
    int64_t node;       /* id; -1: not said */
    const char *role;   /* lies in json; "?" if not said */
    const char *status; /* the same, of the view's machine: "serving", "joining", ... */
    json_t *json;       /* all of it; NULL: nothing */
};

/* Reads the JSON that a node answers; false, and an empty report, if it makes no sense. */
bool node_report_parse(struct bytes text, struct node_report *report_out);
void node_report_deinit(struct node_report *report);

/* Asks a node on a new connection. Unless NODE_REPORT_OK, why_out (size bytes) says why in words
 * and report_out is empty. */
enum node_report_result node_report_fetch(const struct node_address *address, uint32_t timeout_ms,
                                          struct node_report *report_out, char *why_out,
                                          uint32_t size);

/* Connects and authenticates, for other commands to a node. As above. */
enum node_report_result node_connect(struct resp_client *client, const struct node_address *address,
                                     uint32_t timeout_ms, char *why_out, uint32_t size);

/* Asks on such a connection; an error that the node answers is said in words as well. */
enum node_report_result node_ask(struct resp_client *client, uint32_t n, const struct bytes *args,
                                 uint32_t timeout_ms, struct resp_client_reply *reply_out,
                                 char *why_out, uint32_t size);

/* The text of an error as it may be printed. */
void node_error_text(struct bytes error, char *text_out, uint32_t size);

/* As tables for people. What came from outside cannot steer a terminal. */
void node_report_print(const struct node_report *report, FILE *to);

#endif
