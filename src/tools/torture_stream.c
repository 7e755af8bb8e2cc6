#include "tools/torture_stream.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"

#define STREAM_FIRST 4096u
#define STREAM_MAX (8u << 20)

void torture_stream_init(struct torture_stream *stream)
{
    *stream = (struct torture_stream){.fd = -1};
}

void torture_stream_deinit(struct torture_stream *stream)
{
    torture_stream_close(stream, false);
    free(stream->out);
    free(stream->in);
    torture_stream_init(stream);
}

void torture_stream_close(struct torture_stream *stream, bool reset)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (stream->fd >= 0) {
        if (reset) {
            (void)setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        }
        close(stream->fd);
    }
    stream->fd = -1;
    stream->state = STREAM_CLOSED;
    stream->out_n = stream->out_at = 0;
    stream->in_n = stream->in_at = 0;
}

bool torture_stream_connect(struct torture_stream *stream, const struct sockaddr_in *address)
{
    int one = 1;
    torture_stream_close(stream, false);
    stream->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (stream->fd < 0) {
        return false;
    }
    (void)setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    stream->state = STREAM_CONNECTING;
    if (connect(stream->fd, (const struct sockaddr *)address, sizeof *address) == 0) {
        stream->state = STREAM_OPEN;
    } else if (errno != EINPROGRESS) {
        torture_stream_close(stream, false);
        return false;
    }
    return true;
}

/* Bounded by what a client asks for at one time. */
static bool make_room(uint8_t **buffer, uint32_t *max, uint32_t needed)
{
    uint32_t size = *max == 0 ? STREAM_FIRST : *max;
    while (size < needed && size < STREAM_MAX) {
        size *= 2;
    }
    if (needed > size) {
        return false;
    }
    if (size > *max) {
        uint8_t *larger = realloc(*buffer, size);
        if (larger == NULL) {
            return false;
        }
        *buffer = larger;
        *max = size;
    }
    return true;
}

static void put(struct torture_stream *stream, const void *bytes, uint32_t n)
{
    memcpy(stream->out + stream->out_n, bytes, n);
    stream->out_n += n;
}

bool torture_stream_say(struct torture_stream *stream, uint32_t n, const struct bytes *args)
{
    char head[32];
    uint32_t needed = stream->out_n + (uint32_t)sizeof head;
    for (uint32_t i = 0; i < n; i++) {
        needed += args[i].n + (uint32_t)sizeof head;
    }
    if (!make_room(&stream->out, &stream->out_max, needed)) {
        return false;
    }
    put(stream, head, (uint32_t)snprintf(head, sizeof head, "*%u\r\n", n));
    for (uint32_t i = 0; i < n; i++) {
        put(stream, head, (uint32_t)snprintf(head, sizeof head, "$%u\r\n", args[i].n));
        put(stream, args[i].at, args[i].n);
        put(stream, "\r\n", 2);
    }
    return true;
}

short torture_stream_events(const struct torture_stream *stream)
{
    switch (stream->state) {
    case STREAM_CONNECTING:
        return POLLOUT;
    case STREAM_OPEN:
        return (short)(POLLIN | (stream->out_at < stream->out_n ? POLLOUT : 0));
    case STREAM_CLOSED:
        break;
    }
    return 0;
}

/* Called once the socket is writable: it is connected, or it never will be. */
static bool finish_connecting(struct torture_stream *stream)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        return false;
    }
    struct sockaddr_in peer;
    size = sizeof peer;
    if (getpeername(stream->fd, (struct sockaddr *)&peer, &size) == 0) {
        stream->state = STREAM_OPEN;
    }
    return true;
}

bool torture_stream_flush(struct torture_stream *stream)
{
    if (stream->state == STREAM_CONNECTING && !finish_connecting(stream)) {
        return false;
    }
    while (stream->state == STREAM_OPEN && stream->out_at < stream->out_n) {
        ssize_t n = send(stream->fd, stream->out + stream->out_at, stream->out_n - stream->out_at,
                         MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        stream->out_at += n > 0 ? (uint32_t)n : 0;
    }
    if (stream->out_at == stream->out_n) {
        stream->out_at = stream->out_n = 0;
    }
    return true;
}

bool torture_stream_receive(struct torture_stream *stream)
{
    if (stream->in_at > 0) {
        memmove(stream->in, stream->in + stream->in_at, stream->in_n - stream->in_at);
        stream->in_n -= stream->in_at;
        stream->in_at = 0;
    }
    while (stream->state == STREAM_OPEN) {
        if (!make_room(&stream->in, &stream->in_max, stream->in_n + STREAM_FIRST / 2)) {
            return false;
        }
        uint32_t room = stream->in_max - stream->in_n;
        ssize_t n = recv(stream->fd, stream->in + stream->in_n, room, 0);
        if (n < 0 && errno == EAGAIN) {
            return true;
        }
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return false;
        }
        stream->in_n += n > 0 ? (uint32_t)n : 0;
        if (n > 0 && (uint32_t)n < room) {
            return true;
        }
    }
    return true;
}

int torture_stream_reply(struct torture_stream *stream, struct resp_client_reply *reply_out)
{
    uint32_t used = 0;
    if (stream->in_at == stream->in_n) {
        return HK_ERR_NOTFOUND;
    }
    int err = resp_client_parse(bytes_of(stream->in + stream->in_at, stream->in_n - stream->in_at),
                                reply_out, &used);
    stream->in_at += err == HK_OK ? used : 0;
    return err;
}

int torture_stream_array(struct torture_stream *stream, int64_t *items_out)
{
    const uint8_t *at = stream->in + stream->in_at;
    uint32_t n = stream->in_n - stream->in_at;
    char digits[16];
    if (n == 0) {
        return HK_ERR_NOTFOUND;
    }
    if (at[0] != '*') {
        return HK_ERR_TYPE;
    }
    const uint8_t *end = memchr(at, '\n', n);
    if (end == NULL) {
        return n > sizeof digits ? HK_ERR_CORRUPT : HK_ERR_NOTFOUND;
    }
    uint32_t length = (uint32_t)(end - at);
    if (length < 3 || length >= sizeof digits) {
        return HK_ERR_CORRUPT;
    }
    memcpy(digits, at + 1, length - 1);
    digits[length - 1] = '\0';
    *items_out = strtoll(digits, NULL, 10);
    stream->in_at += length + 1;
    return HK_OK;
}
