#include "sim/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

/* ---- Commands ---- */

uint32_t redis_command(const struct bytes *words, uint32_t n, uint8_t **out)
{
    size_t room = 16;
    for (uint32_t i = 0; i < n; i++) {
        room += words[i].n + 16u;
    }
    uint8_t *at = malloc(room);
    HK_ASSERT(at != NULL);
    size_t used = (size_t)sprintf((char *)at, "*%" PRIu32 "\r\n", n);
    for (uint32_t i = 0; i < n; i++) {
        used += (size_t)sprintf((char *)at + used, "$%" PRIu32 "\r\n", words[i].n);
        if (words[i].n > 0) {
            memcpy(at + used, words[i].at, words[i].n);
        }
        memcpy(at + used + words[i].n, "\r\n", 2);
        used += words[i].n + 2u;
    }
    HK_ASSERT(used <= room);
    *out = at;
    return (uint32_t)used;
}

/* ---- Replies ---- */

static const struct {
    const char *prefix;
    int err;
} errors[] = {
    {"-OOM ", HK_ERR_NOMEM},
    {"-CLUSTERDOWN ", HK_ERR_UNAVAILABLE},
    {"-LOADING ", HK_ERR_LOADING},
    {"-UNKNOWN ", HK_ERR_UNKNOWN},
    {"-TRYAGAIN ", HK_ERR_BUSY},
    {"-LOSTSLOT ", HK_ERR_LOSTSLOT},
    {"-NOROLE ", HK_ERR_ROLE},
    {"-LOST ", HK_ERR_LOST},
    {"-ERR value is not", HK_ERR_TYPE},
    {"-ERR increment or decrement would overflow", HK_ERR_OVERFLOW},
    {"-ERR increment would produce", HK_ERR_OVERFLOW},
    {"-ERR string exceeds maximum allowed size", HK_ERR_TOOBIG},
};

static const char *answer_error(struct bytes reply, struct answer *answer_out)
{
    for (uint32_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        size_t n = strlen(errors[i].prefix);
        if (reply.n >= n && memcmp(reply.at, errors[i].prefix, n) == 0) {
            *answer_out = (struct answer){.kind = ANSWER_ERROR, .number = errors[i].err};
            return NULL;
        }
    }
    *answer_out = (struct answer){
        .kind = ANSWER_ERROR,
        .number = HK_ERR_INVALID,
        .value = bytes_of(reply.at, reply.n - 2),
    };
    return NULL;
}

/* The number behind the reply's first byte, and where its line ends. */
static bool line_number(struct bytes reply, int64_t *number_out, uint32_t *end_out)
{
    char text[24] = "";
    uint32_t n = 0;
    while (1 + n < reply.n && reply.at[1 + n] != '\r') {
        if (n + 1 >= sizeof text) {
            return false;
        }
        text[n] = (char)reply.at[1 + n];
        n++;
    }
    int used = 0;
    *end_out = n + 3;
    return reply.n >= n + 3 && reply.at[n + 2] == '\n' &&
           sscanf(text, "%" SCNd64 "%n", number_out, &used) == 1 && (uint32_t)used == n;
}

static const char *answer_bulk(struct bytes reply, struct answer *answer_out)
{
    int64_t length;
    uint32_t begin;
    if (!line_number(reply, &length, &begin) || length < -1) {
        return "a bulk without a length";
    }
    if (length == -1) {
        *answer_out = (struct answer){.kind = ANSWER_NIL};
        return reply.n == begin ? NULL : "more than one reply";
    }
    if ((uint64_t)length + begin + 2 != reply.n || memcmp(reply.at + reply.n - 2, "\r\n", 2) != 0) {
        return "a bulk of another length than it says";
    }
    *answer_out = (struct answer){
        .kind = ANSWER_VALUE,
        .value = bytes_of(reply.at + begin, (uint32_t)length),
    };
    return NULL;
}

const char *redis_answer(struct bytes reply, struct answer *answer_out)
{
    int64_t number;
    uint32_t end;
    if (reply.n < 3 || memcmp(reply.at + reply.n - 2, "\r\n", 2) != 0) {
        return "no whole reply";
    }
    switch (reply.at[0]) {
    case '+':
        *answer_out = (struct answer){.kind = ANSWER_OK};
        if (reply.n != 5 || memcmp(reply.at, "+OK", 3) != 0) {
            answer_out->kind = ANSWER_VALUE;
            answer_out->value = bytes_of(reply.at + 1, reply.n - 3);
        }
        return NULL;
    case ':':
        if (!line_number(reply, &number, &end) || end != reply.n) {
            return "no number";
        }
        *answer_out = (struct answer){.kind = ANSWER_NUMBER, .number = number};
        return NULL;
    case '_':
        *answer_out = (struct answer){.kind = ANSWER_NIL};
        return reply.n == 3 ? NULL : "more than one reply";
    case '$':
        return answer_bulk(reply, answer_out);
    case '-':
        return answer_error(reply, answer_out);
    default:
        return "a reply of no kind that is known";
    }
}

/* The end of the line that begins at `from`, its break included; 0: there is none. */
static uint32_t line_end(struct bytes replies, uint32_t from)
{
    for (uint32_t i = from; i + 1 < replies.n; i++) {
        if (replies.at[i] == '\r' && replies.at[i + 1] == '\n') {
            return i + 2;
        }
    }
    return 0;
}

/* Replies nest: `left` counts those that still have to come. */
uint32_t redis_reply_bytes(struct bytes replies)
{
    uint64_t left = 1;
    uint32_t at = 0;
    while (left > 0) {
        uint32_t end = at < replies.n ? line_end(replies, at) : 0;
        if (end == 0) {
            return 0;
        }
        uint8_t kind = replies.at[at];
        int64_t number = 0;
        uint32_t line = 0;
        bool counts = strchr("$=!*~>%|", kind) != NULL;
        struct bytes rest = bytes_of(replies.at + at, end - at);
        if (counts && !line_number(rest, &number, &line)) {
            return 0;
        }
        left--;
        at = end;
        if (kind == '*' || kind == '~' || kind == '>') {
            left += number > 0 ? (uint64_t)number : 0;
        } else if (kind == '%' || kind == '|') {
            left += number > 0 ? 2 * (uint64_t)number : 0;
        } else if (counts && number >= 0) {
            if ((uint64_t)number + 2 > replies.n - at) {
                return 0;
            }
            at += (uint32_t)number + 2;
        }
    }
    return at;
}

const char *redis_array(struct bytes reply, uint32_t n, struct bytes *parts_out)
{
    int64_t number = 0;
    uint32_t at = 0;
    if (reply.n < 4 || reply.at[0] != '*' || !line_number(reply, &number, &at) || number != n) {
        return "no array of as many values as there are keys";
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bytes = redis_reply_bytes(bytes_of(reply.at + at, reply.n - at));
        if (bytes == 0) {
            return "an array that ends too early";
        }
        parts_out[i] = bytes_of(reply.at + at, bytes);
        at += bytes;
    }
    return at == reply.n ? NULL : "an array that goes on";
}

/* ---- The process ---- */

static uint64_t host_random(void *context)
{
    (void)context;
    return 0; /* no command that clients send here asks for it */
}

static const struct resp_limits *host_limits(void *context)
{
    static const struct resp_limits limits = {
        .bulk_bytes_max = 1u << 20,
        .arguments_max = 1024,
        .query_bytes_max = 4u << 20,
        .output_bytes_max = 4u << 20,
    };
    (void)context;
    return &limits;
}

void redis_host_init(struct resp_host *host, uint64_t (*wall_us)(void *context), void *context)
{
    *host = (struct resp_host){
        .context = context,
        .wall_us = wall_us,
        .random = host_random,
        .limits = host_limits,
    };
}
