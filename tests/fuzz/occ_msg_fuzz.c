/* Messages of the baseline on hostile bytes: what is taken for valid says the same when it is made
 * again, points into the message, and its answers drive a coordinator without breaking its
 * invariants. Input: messages, as docs/WIRE.md has them; the last bits of slot say from whom, of
 * gen how a transaction that is to be decided goes on. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"
#include "engine/occ/occ.h"
#include "engine/txn.h"

static bool has_objects(const struct msg *m)
{
    return m->kind != OCC_MSG_VALIDATED && m->kind != OCC_MSG_REPLICATED &&
           (m->kind != OCC_MSG_EXECUTED || m->ts == 1);
}

static void check_object(const struct msg *m, const struct occ_object *o)
{
    HK_ASSERT(o->key.at >= m->value.at && o->value.at == o->key.at + o->key.n);
    HK_ASSERT(o->value.at + o->value.n <= m->value.at + m->value.n);
    HK_ASSERT(o->key.n <= MSG_KEY_MAX && stamp_version(o->version) <= OCC_VERSION_MAX);
    HK_ASSERT((o->flags & OCC_ABSENT) == 0 || o->value.n == 0);
    HK_ASSERT((o->flags & KEY_DEADLINE) == 0 || o->value.n >= 8);
    HK_ASSERT((o->flags & ~(KEY_DEADLINE | OCC_ABSENT | OCC_LOCK)) == 0);
    HK_ASSERT(m->kind != OCC_MSG_REPLICATE || (o->version != 0 && (o->flags & OCC_LOCK) == 0));
}

static void check_objects(const struct msg *m)
{
    struct bytes rest = m->value;
    uint8_t *again = malloc(rest.n + 1u);
    uint8_t *at = again;
    struct occ_object o;
    uint32_t n = 0;
    HK_ASSERT(again != NULL);
    while (occ_object_take(&rest, &o)) {
        check_object(m, &o);
        HK_ASSERT(occ_object_bytes(&o) <= m->value.n - (uint32_t)(at - again));
        at = occ_object_put(at, &o);
        n++;
    }
    HK_ASSERT(rest.n == 0 && n >= 1 && n <= TXN_OBJECTS_MAX);
    HK_ASSERT(bytes_equal(bytes_of(again, (uint32_t)(at - again)), m->value));
    free(again);
}

/* Node 0's transaction: nodes 1 to 3 are other homes, of which 1 is written and 2 read. */
static void begin(struct occ_txn *t, struct occ_effects *fx)
{
    *t = (struct occ_txn){.state = OCC_IDLE};
    fx->n = 0;
    occ_begin(t, 0xe, 0x6, 0xc, fx);
}

static void step(struct occ_txn *t, const struct msg *m)
{
    static const uint8_t phases[OCC_MSG_END] = {[OCC_MSG_EXECUTED] = OCC_EXECUTE,
                                                [OCC_MSG_VALIDATED] = OCC_VALIDATE,
                                                [OCC_MSG_REPLICATED] = OCC_REPLICATE};
    struct occ_effects fx = {.n = 0};
    if (phases[m->kind] == OCC_IDLE) {
        return;
    }
    occ_answered(t, (enum occ_state)phases[m->kind], (uint8_t)(m->slot & 3), m->ts == 1, &fx);
    HK_ASSERT(fx.n <= OCC_EFFECTS_MAX);
    if (fx.n == 1 && fx.e[0].kind == OCC_FX_EVALUATE) {
        bool writes = (m->gen & 1) != 0;
        fx.n = 0;
        occ_evaluated(t, (m->gen & 2) == 0, writes, writes ? 0x2 : 0,
                      writes && (m->gen & 4) != 0 ? 0xc : 0, &fx);
    }
    occ_check(t);
    if (t->state == OCC_IDLE) {
        begin(t, &fx);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_txn t;
    struct occ_effects fx;
    struct msg m;
    uint32_t used;
    if (size > 1 << 20) {
        return 0;
    }
    begin(&t, &fx);
    for (struct bytes rest = bytes_of(data, (uint32_t)size);
         rest.n > 0 && msg_decode(rest, &m, &used) == HK_OK;
         rest = bytes_of(rest.at + used, rest.n - used)) {
        if (occ_msg_invalid(&m) == NULL) {
            if (has_objects(&m)) {
                check_objects(&m);
            }
            step(&t, &m);
        }
    }
    return 0;
}
