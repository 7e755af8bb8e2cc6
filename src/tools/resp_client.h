/* A small blocking client of the Redis protocol (RESP2) for the program's own commands: one
 * request at a time, over TCP or a unix socket, and no step of it lasts longer than its time-out.
 * It understands what those commands are answered with: lines, errors, numbers and bulk strings.
 * An array, or anything that is no RESP2, breaks the connection.
 *
 * Not for several threads at once. */
#ifndef HORKOS_TOOLS_RESP_CLIENT_H
#define HORKOS_TOOLS_RESP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define RESP_CLIENT_BULK_MAX (16u << 20)
#define RESP_CLIENT_LINE_MAX (64u << 10)

enum resp_client_kind {
    RESP_CLIENT_LINE,   /* "+OK" */
    RESP_CLIENT_ERROR,  /* "-ERR ..." */
    RESP_CLIENT_NUMBER, /* ":1" */
    RESP_CLIENT_BULK,   /* "$2\r\nhi\r\n" */
    RESP_CLIENT_NIL,    /* "$-1" */
};

struct resp_client_reply {
    enum resp_client_kind kind;
    struct bytes text; /* of a line, an error (without its sign) or a bulk string; else empty */
    int64_t number;    /* of a number; else 0 */
};

/* Reads the reply that `in` begins with. Its text lies in `in`. HK_OK: used_out bytes belong to
 * it. HK_ERR_NOTFOUND: more bytes are needed. HK_ERR_CORRUPT: no reply begins so. HK_ERR_TOOBIG:
 * past the bounds above. HK_ERR_TYPE: an array. */
int resp_client_parse(struct bytes in, struct resp_client_reply *reply_out, uint32_t *used_out)
    __attribute__((warn_unused_result));

struct resp_client_target {
    const char *host; /* name or number; not with socket_path */
    uint16_t port;
    const char *socket_path; /* NULL: host and port */
};

struct resp_client {
    int fd; /* -1: not connected */
    uint8_t *buffer;
    uint32_t buffer_n, buffer_max;
    char where[300]; /* "127.0.0.1:7001", for messages */
    char why[400];   /* of the last failure: a sentence without full stop */
};

void resp_client_init(struct resp_client *client);
void resp_client_deinit(struct resp_client *client);

/* HK_ERR_IO: nobody listens, or no answer in time; HK_ERR_INVALID: the address makes no sense;
 * client->why says it in words. The time-out does not bound the look-up of a host's name. */
int resp_client_connect(struct resp_client *client, const struct resp_client_target *target,
                        uint32_t timeout_ms) __attribute__((warn_unused_result));

/* Sends a command and waits for its reply, whose text is good until the next call. An error that
 * the server answers is a reply like others. HK_ERR_IO: the connection broke or the time is up;
 * HK_ERR_CORRUPT: what came is not one reply; HK_ERR_NOMEM. After a failure the connection is
 * closed and client->why says why. */
int resp_client_call(struct resp_client *client, uint32_t n, const struct bytes *args,
                     uint32_t timeout_ms, struct resp_client_reply *reply_out)
    __attribute__((warn_unused_result));

#endif
