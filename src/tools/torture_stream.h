/* A connection with a node that never blocks: what is to be said waits in it, and so do the
 * bytes of replies that are not whole. */
#ifndef HORKOS_TOOLS_TORTURE_STREAM_H
#define HORKOS_TOOLS_TORTURE_STREAM_H

#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "tools/resp_client.h"

enum torture_stream_state { STREAM_CLOSED, STREAM_CONNECTING, STREAM_OPEN };

struct torture_stream {
    enum torture_stream_state state;
    int fd; /* -1: CLOSED */
    uint8_t *out, *in;
    uint32_t out_n, out_at, out_max; /* bytes from out_at to out_n are still to be sent */
    uint32_t in_n, in_at, in_max;
};

void torture_stream_init(struct torture_stream *stream);
void torture_stream_deinit(struct torture_stream *stream);

/* False: refused at once. */
bool torture_stream_connect(struct torture_stream *stream, const struct sockaddr_in *address);
/* What waits in it, in both directions, is dropped. reset: the other side gets a reset. */
void torture_stream_close(struct torture_stream *stream, bool reset);

/* Appends a command of n arguments. False: no memory. */
bool torture_stream_say(struct torture_stream *stream, uint32_t n, const struct bytes *args);

/* What poll should wait for. */
short torture_stream_events(const struct torture_stream *stream);
/* Finishes connecting if it can be, and sends what can be sent. False: the connection broke. */
bool torture_stream_flush(struct torture_stream *stream);
/* Receives what has arrived. False: the connection broke or is closed; what came before that can
 * still be had as replies. */
bool torture_stream_receive(struct torture_stream *stream);
/* The next whole reply, which is good until the stream receives again. HK_OK, HK_ERR_NOTFOUND, or
 * what resp_client_parse finds wrong. */
int torture_stream_reply(struct torture_stream *stream, struct resp_client_reply *reply_out)
    __attribute__((warn_unused_result));

/* If the next reply is an array: how many items follow, each a reply of its own; -1: nil. HK_OK,
 * HK_ERR_NOTFOUND, or HK_ERR_TYPE if it is something else. */
int torture_stream_array(struct torture_stream *stream, int64_t *items_out)
    __attribute__((warn_unused_result));

#endif
