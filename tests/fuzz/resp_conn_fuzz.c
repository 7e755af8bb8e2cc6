/* A whole connection under a hostile client, twice: once with everything done at once, once with
 * the stream cut, operations answered late and updates held back now and then. What leaves must be
 * the same, the memory bounded and every operation answered.
 *
 * Input: a byte of choices (1: a password is required, 2: few bytes may wait in the output, 4:
 * the node is loading, 8: some operations fail, 16: space 3 is an ordered one), one of the piece's
 * length less one, one of which the bits say what happens after each piece, then the stream. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "support/resp_rig.h"

#define STREAM_MAX 4096u
#define VALUE_MAX 1024u

enum choice {
    CHOICE_PASSWORD = 1,
    CHOICE_TIGHT = 2,
    CHOICE_LOADING = 4,
    CHOICE_FAILS = 8,
    CHOICE_ORDERED = 16
};

static void start(struct rig *rig, uint8_t choices)
{
    rig_init(rig);
    rig->value_max = VALUE_MAX;
    rig->limits.bulk_bytes_max = 1 << 16;
    rig->limits.query_bytes_max = 1 << 17;
    rig->limits.output_bytes_max = (choices & CHOICE_TIGHT) != 0 ? 4096 : 32u << 20;
    rig->password = (choices & CHOICE_PASSWORD) != 0 ? "secret" : NULL;
    rig->serving = (choices & CHOICE_LOADING) != 0 ? HK_ERR_LOADING : HK_OK;
    rig->fail_at = (choices & CHOICE_FAILS) != 0 ? 5 : 0;
    rig->fail_with = HK_ERR_UNKNOWN;
    rig->ordered = (choices & CHOICE_ORDERED) != 0;
    rig->awake = true; /* a deadline comes when all pieces have */
    rig_reconnect(rig);
}

static void finish(struct rig *rig)
{
    rig->updates = true;
    rig->awake = false;
    (void)rig_run(rig);
    HK_ASSERT(rig->last == RESP_INPUT || rig->last == RESP_CLOSE);
    HK_ASSERT(rig->ops_n == 0 && rig->handed_out == rig->answered);
    HK_ASSERT(resp_conn_in_flight(rig->conn) == 0);
    HK_ASSERT(resp_conn_output(rig->conn).n == 0);
}

/* One bit of `how` after each piece, in turn: a few steps, an answer, all answers, output, ... */
static void disturb(struct rig *rig, uint8_t how, uint32_t round)
{
    if ((how & 1) != 0)
        rig->updates = round % 3 != 0;
    if ((how >> (round % 7) & 2) != 0) {
        for (uint32_t i = 0; i < 4 && rig->ops_n < RESP_IN_FLIGHT_MAX; i++)
            (void)rig_next(rig);
    }
    if ((how >> (round % 5) & 4) != 0 && rig->ops_n > 0)
        rig_answer(rig);
    if ((how >> (round % 3) & 8) != 0)
        (void)rig_run(rig);
}

static void check_held(const struct rig *rig)
{
    HK_ASSERT(resp_conn_bytes_held(rig->conn) <
              4 * (uint64_t)rig->limits.output_bytes_max + 32 * STREAM_MAX + (1u << 20));
}

/* How much of the output must not depend on how the input came. Of a command of several keys one of
 * which failed, the others may be changed or not, and later commands see that. */
static uint32_t certain(const struct rig *rig)
{
    static const char failed[] = "-UNKNOWN";
    const uint32_t length = sizeof failed - 1;
    for (uint32_t at = 0; at + length <= rig->output_n; at++) {
        if (memcmp(rig->output + at, failed, length) == 0)
            return at + length;
    }
    return (uint32_t)rig->output_n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rig whole, pieces;

    if (size < 3 || size > STREAM_MAX)
        return 0;

    const uint8_t *stream = data + 3;
    uint32_t n = (uint32_t)size - 3, piece = data[1] + 1u, round = 0;

    start(&whole, data[0]);
    (void)rig_send_bytes(&whole, bytes_of(stream, n));
    check_held(&whole);
    finish(&whole);

    start(&pieces, data[0]);
    for (uint32_t at = 0; at < n; at += piece) {
        rig_feed(&pieces, bytes_of(stream + at, n - at < piece ? n - at : piece));
        disturb(&pieces, data[2], round++);
        check_held(&pieces);
    }
    finish(&pieces);

    /* CLIENT INFO tells of the buffers, and a limit of the output is reached or not. */
    if ((data[0] & CHOICE_TIGHT) == 0 && strstr((const char *)whole.output, "qbuf=") == NULL) {
        HK_ASSERT(certain(&whole) == certain(&pieces));
        HK_ASSERT(memcmp(whole.output, pieces.output, certain(&whole)) == 0);
    }
    rig_deinit(&whole);
    rig_deinit(&pieces);
    return 0;
}
