/* The request side of RESP: multibulk and inline commands from a byte stream that may break
 * anywhere. Pure. Arguments point into the input; nothing is copied. */
#ifndef HORKOS_RESP_PARSE_H
#define HORKOS_RESP_PARSE_H

#include <stdint.h>

#include "base/bytes.h"

#define RESP_INLINE_MAX (64u * 1024u)

struct resp_limits {
    uint32_t bulk_bytes_max;   /* one argument: proto-max-bulk-len */
    uint32_t arguments_max;    /* of one command */
    uint32_t query_bytes_max;  /* one whole command */
    uint32_t output_bytes_max; /* replies of one connection that it has not read */
};

/* Before a connection has proved who it is, it gets no more than Redis gives it: 10 arguments of 16
 * KiB. */
extern const struct resp_limits resp_limits_stranger;

enum resp_parsed {
    RESP_PARSED,   /* a whole command (n may be 0: an empty line; skip it) */
    RESP_PARTIAL,  /* more bytes are needed */
    RESP_MALFORMED /* the stream cannot be followed; error says why, in Redis's words */
};

/* Where the parse of a partial command stands, so that it goes on and does not start anew with each
 * piece. Plain memory but for args, which resp_parser_deinit frees. Offsets count from the start of
 * the command, so the input may be moved between calls if the command's start moves along. */
struct resp_parser {
    uint32_t offset;  /* examined so far: where the next header, argument or line starts */
    uint32_t scanned; /* no end of line lies between offset and this */
    int64_t expected; /* arguments of a multibulk command; -1: its header is not read yet */
    int64_t bulk;     /* bytes of the argument that comes; -1: its header is not read yet */
    uint32_t n;       /* arguments found */
    uint32_t capacity;
    struct {
        uint32_t at, n; /* offset from the command's start, and length */
    } * args;
    char error[128];
    uint32_t need; /* PARTIAL: bytes of the whole command as far as is known; else 0 */
};

void resp_parser_init(struct resp_parser *parser);
void resp_parser_deinit(struct resp_parser *parser);
/* Makes ready for the next command; keeps a small args array. */
void resp_parser_reset(struct resp_parser *parser);

/* Looks for one command at the start of the n bytes of input, which begin as in the call before if
 * that answered RESP_PARTIAL. RESP_PARSED: arguments by resp_argument, and used_out is the
 * command's length. Also RESP_MALFORMED when memory for the arguments is short. The arguments of an
 * inline command that has quotes are unescaped where they stand, so the input is written to. */
enum resp_parsed resp_parse(struct resp_parser *parser, const struct resp_limits *limits,
                            uint8_t *input, uint32_t n, uint32_t *used_out)
    __attribute__((warn_unused_result));
/* input as in the call of resp_parse that answered RESP_PARSED (it may have moved meanwhile). */
static inline struct bytes resp_argument(const struct resp_parser *parser, struct bytes input,
                                         uint32_t index)
{
    return bytes_of(input.at + parser->args[index].at, parser->args[index].n);
}

#endif
