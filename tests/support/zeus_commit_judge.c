/* What the rig of reliable commit says of a run that has come to rest. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "check/txn_history.h"
#include "support/zeus_commit_rig.h"

/* ---- What survived ---- */

/* All live replicas of each object are VALID and the same. */
static const char *replicas_agree(const struct crig *r)
{
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        const struct crig_replica *first = NULL;
        for (nodeset rest = crig_holders(r, o); rest != 0; rest &= rest - 1) {
            const struct crig_replica *replica = &r->nodes[nodeset_first(rest)].objects[o];
            if (!replica->have || replica->state != CRIG_VALID) {
                return "an object is not valid for ever";
            }
            first = first == NULL ? replica : first;
            if (replica->value != first->value || replica->version != first->version) {
                return "replicas differ";
            }
        }
    }
    return NULL;
}

/* Bits of objects in whose chain of values, from the last one back to the first, it stands; in
 * known_out those that have a live replica at all. */
static void find_chains(const struct crig *r, uint32_t *in_chain, uint32_t *known_out)
{
    memset(in_chain, 0, CRIG_TXNS * sizeof(*in_chain));
    *known_out = 0;
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        uint8_t holder = nodeset_first(crig_holders(r, o));
        if (holder == NODE_NONE) {
            continue;
        }
        *known_out |= 1u << o;
        for (uint32_t t = r->nodes[holder].objects[o].value; t != 0; t = r->txns[t].seen[o]) {
            in_chain[t] |= 1u << o;
        }
    }
}

static const char *check_survivors(const struct crig *r)
{
    uint32_t in_chain[CRIG_TXNS];
    uint32_t known;
    find_chains(r, in_chain, &known);
    for (uint32_t i = 1; i <= r->ntxns; i++) {
        const struct crig_txn *t = &r->txns[i];
        uint32_t writes = t->writes & known;
        if (in_chain[i] != 0 && in_chain[i] != writes) {
            return "a transaction is there in part";
        }
        if (t->told && in_chain[i] != writes) {
            return "a transaction of which its client was told is lost";
        }
        for (uint32_t j = 1; in_chain[i] != 0 && j < i; j++) {
            const struct crig_txn *before = &r->txns[j];
            if (before->slot != 0 && before->node == t->node && before->born == t->born &&
                before->worker == t->worker && (before->writes & known) != 0 && in_chain[j] == 0) {
                return "a transaction survived without one before it in its pipeline";
            }
        }
    }
    return NULL;
}

/* ---- What was seen ---- */

static const char *check_history(const struct crig *r)
{
    static struct txn_op ops[CRIG_TXNS * 2 * CRIG_OBJECTS];
    static struct txn txns[CRIG_TXNS];
    static struct txn_report report;
    size_t n = 0;
    for (uint32_t i = 1; i <= r->ntxns; i++) {
        const struct crig_txn *t = &r->txns[i];
        struct txn *out = &txns[i - 1];
        *out = (struct txn){.ops = &ops[n],
                            .client = t->node * CRIG_WORKERS + t->worker,
                            .begin_us = t->begin,
                            .end_us = t->told ? t->end : t->begin,
                            .outcome = t->told ? TXN_COMMITTED : TXN_UNKNOWN};
        for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
            if ((t->reads >> o & 1) != 0) {
                ops[n++] = (struct txn_op){
                    .key = o, .kind = TXN_READ, .value = t->seen[o], .version = t->seen_version[o]};
            }
        }
        for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
            if ((t->writes >> o & 1) != 0) {
                ops[n++] = (struct txn_op){
                    .key = o, .kind = TXN_WRITE, .value = i, .version = t->version[o]};
            }
        }
        out->ops_n = (uint32_t)(&ops[n] - out->ops);
    }
    struct txn_history history = {.txns = txns, .n = r->ntxns, .recording = TXN_VERSIONS};
    if (check_transactions(&history, TXN_STRICT_SERIALIZABLE, &report) == CHECK_ACCEPTED) {
        return NULL;
    }
    return report.text;
}

const char *crig_judge(struct crig *r)
{
    const char *why = replicas_agree(r);
    if (why == NULL) {
        why = check_survivors(r);
    }
    return why != NULL ? why : check_history(r);
}

void crig_print(const struct crig *r)
{
    for (uint32_t i = 1; i <= r->ntxns; i++) {
        const struct crig_txn *t = &r->txns[i];
        printf("%u: node %u pipe %u slot %llu reads %x writes %x%s\n", i, t->node, t->worker,
               (unsigned long long)t->slot, t->reads, t->writes, t->told ? " told" : "");
    }
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        printf("object %u: owner %u readers %llx epoch %u:", o, r->vectors[o].owner,
               (unsigned long long)r->vectors[o].readers, r->vectors[o].epoch);
        for (uint8_t i = 0; i < r->n; i++) {
            const struct crig_replica *x = &r->nodes[i].objects[o];
            printf(" [%u%s: %u at %llx state %u]", i, x->have ? "" : " none", x->value,
                   (unsigned long long)x->version, x->state);
        }
        printf("\n");
    }
}
