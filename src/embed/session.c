/* Sessions: open, poll, wait, close. */
#include "embed/internal.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"

#define IN_FLIGHT_DEFAULT 64u
#define WAIT_MS 1000u

int hk_session_open(struct hk_node *node, const struct hk_session_options *options,
                    struct hk_session **session_out)
{
    uint32_t most =
        options != NULL && options->in_flight_max != 0 ? options->in_flight_max : IN_FLIGHT_DEFAULT;
    if (node == NULL || session_out == NULL || most > HK_IN_FLIGHT_MAX) {
        return HK_ERR_INVALID;
    }
    struct hk_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return HK_ERR_NOMEM;
    }
    s->space = options != NULL ? options->space : 0;
    s->async_max = most;
    s->slots_n = most + 1;
    while (s->spare_n < s->slots_n) {
        s->spare[s->spare_n] = (uint8_t)s->spare_n;
        s->spare_n++;
    }
    int err = local_open(server_locals(node->server), s->slots_n, &s->local);
    if (err != HK_OK) {
        free(s);
        return err;
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        s->ordered |= server_space_ordered(node->server, i) ? 1u << i : 0;
        s->transacts |= server_space_owned(node->server, i) ? 1u << i : 0;
    }
    s->transacts |= s->ordered;
    random_init(&s->random, (uint64_t)(uintptr_t)s ^ clock_boot_us());
    *session_out = s;
    return HK_OK;
}

void hk_session_close(struct hk_session *s)
{
    if (s == NULL) {
        return;
    }
    while (s->async_n > 0) {
        (void)hk_session_wait(s, WAIT_MS);
        (void)hk_session_poll(s, UINT32_MAX);
    }
    while (s->dropped_n > 0) {
        (void)local_wait(s->local, WAIT_MS * 1000u);
        operation_take(s);
    }
    transaction_free(s->txn_spare);
    local_close(s->local);
    for (uint32_t i = 0; i < s->slots_n; i++) {
        free(s->slots[i].memory);
    }
    free(s);
}

void hk_session_space(struct hk_session *s, uint32_t space)
{
    if (s != NULL) {
        s->space = space;
    }
}

uint32_t hk_session_in_flight(const struct hk_session *s)
{
    return s != NULL ? s->async_n : 0;
}

uint32_t hk_session_poll(struct hk_session *s, uint32_t max)
{
    uint32_t n = 0;
    if (s == NULL) {
        return 0;
    }
    operation_take(s);
    for (; n < max && s->ready_n > 0; n++) {
        uint32_t slot = s->ready[s->ready_first];
        struct hk_slot *mine = &s->slots[slot];
        struct hk_result result = mine->result;
        hk_done *done = mine->done;
        void *context = mine->context;
        s->ready_first = (s->ready_first + 1) % LOCAL_SLOTS_MAX;
        s->ready_n--;
        s->async_n--;
        operation_free(s, slot); /* `done` may begin another */
        if (done != NULL) {
            done(context, &result);
        }
    }
    return n;
}

int hk_session_wait(struct hk_session *s, uint32_t timeout_ms)
{
    if (s == NULL) {
        return HK_ERR_INVALID;
    }
    operation_take(s);
    if (s->ready_n == 0 && s->async_n == 0) {
        return HK_ERR_NOTFOUND;
    }
    if (s->ready_n == 0 && local_wait(s->local, (uint64_t)timeout_ms * 1000u)) {
        operation_take(s);
    }
    return s->ready_n > 0 ? HK_OK : HK_ERR_TIMEOUT;
}
