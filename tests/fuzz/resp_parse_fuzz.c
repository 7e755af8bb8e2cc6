/* resp_parse on hostile streams, whole and in pieces: both must come to the same.
 *
 * Input: one byte of which bits 0 to 5 are the length of a piece less one and bit 6 chooses the
 * limits of a stranger, bit 7 small ones; then the stream. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "resp/parse.h"

static const struct resp_limits ordinary = {
    .bulk_bytes_max = 1 << 20,
    .arguments_max = 1 << 16,
    .query_bytes_max = 4 << 20,
    .output_bytes_max = 1 << 20,
};
static const struct resp_limits tight = {
    .bulk_bytes_max = 16,
    .arguments_max = 3,
    .query_bytes_max = 40,
    .output_bytes_max = 100,
};

/* What a stream says, in a form that can be compared: counts, lengths and bytes of arguments. */
struct outcome {
    uint8_t *at;
    size_t n, capacity;
};

static void note(struct outcome *outcome, const void *bytes, size_t n)
{
    if (outcome->n + n > outcome->capacity) {
        outcome->capacity = 2 * (outcome->n + n);
        outcome->at = realloc(outcome->at, outcome->capacity);
        HK_ASSERT(outcome->at != NULL);
    }
    if (n > 0)
        memcpy(outcome->at + outcome->n, bytes, n);
    outcome->n += n;
}

static void note_command(struct outcome *outcome, const struct resp_parser *parser,
                         struct bytes command)
{
    note(outcome, &parser->n, sizeof parser->n);
    note(outcome, &command.n, sizeof command.n);
    for (uint32_t i = 0; i < parser->n; i++) {
        struct bytes argument = resp_argument(parser, command, i);

        HK_ASSERT(argument.at >= command.at);
        HK_ASSERT(argument.at + argument.n <= command.at + command.n);
        note(outcome, &argument.n, sizeof argument.n);
        note(outcome, argument.at, argument.n);
    }
}

/* Every piece comes in memory of its own size, so that the sanitizer sees reads past it. */
static struct outcome parse(const uint8_t *stream, uint32_t n, uint32_t piece,
                            const struct resp_limits *limits)
{
    struct outcome outcome = {NULL, 0, 0};
    struct resp_parser parser;
    uint8_t *input = NULL;
    uint32_t have = 0, used = 0;

    resp_parser_init(&parser);
    for (;;) {
        enum resp_parsed parsed = resp_parse(&parser, limits, input, have, &used);

        if (parsed == RESP_PARSED) {
            HK_ASSERT(used > 0 && used <= have && parser.need == 0);
            HK_ASSERT(used <= limits->query_bytes_max || parser.n == 0 || input[0] != '*');
            note_command(&outcome, &parser, bytes_of(input, used));
            resp_parser_reset(&parser);
            have -= used;
            memmove(input, input + used, have);
            continue;
        }
        if (parsed == RESP_MALFORMED) {
            HK_ASSERT(memchr(parser.error, '\0', sizeof parser.error) != NULL);
            note(&outcome, parser.error, strlen(parser.error));
            break;
        }
        HK_ASSERT(parser.need > have);
        /* A small array is kept from the commands before. */
        HK_ASSERT(parser.capacity <= 64 || parser.capacity <= 2 * parser.n);
        if (n == 0)
            break;

        uint32_t more = n < piece ? n : piece;
        uint8_t *grown = malloc(have + more);

        HK_ASSERT(grown != NULL);
        if (have > 0)
            memcpy(grown, input, have);
        memcpy(grown + have, stream, more);
        free(input);
        input = grown;
        have += more;
        stream += more;
        n -= more;
    }
    free(input);
    resp_parser_deinit(&parser);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 1 << 16)
        return 0;

    uint32_t n = (uint32_t)size - 1;
    const struct resp_limits *limits = (data[0] & 64) != 0    ? &resp_limits_stranger
                                       : (data[0] & 128) != 0 ? &tight
                                                              : &ordinary;
    struct outcome whole = parse(data + 1, n, n + (n == 0), limits);
    struct outcome pieces = parse(data + 1, n, (data[0] & 63u) + 1, limits);

    HK_ASSERT(whole.n == pieces.n);
    HK_ASSERT(whole.n == 0 || memcmp(whole.at, pieces.at, whole.n) == 0);
    free(whole.at);
    free(pieces.at);
    return 0;
}
