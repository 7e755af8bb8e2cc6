/* HORKOS LOCKS: who owns which locks at this memory server, who waits, and for whom, as JSON. */
#ifndef HORKOS_SERVER_LOCKS_H
#define HORKOS_SERVER_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "node/node.h"

#define LOCKS_MAX 1000u           /* locks that are looked at, ... */
#define LOCKS_REQUESTS_MAX 10000u /* ... and owners and waiters of them that are told */
#define LOCKS_KEY_MAX 64u         /* bytes of a key that are told */

/* An owner or a waiter of a lock. */
struct locks_request {
    struct node_lock lock; /* key NULL */
    uint32_t key_n;        /* of the whole key */
    uint8_t key[LOCKS_KEY_MAX];
    bool first; /* of its lock */
};

/* Zero: none. */
struct locks {
    struct locks_request *requests;
    uint32_t n, capacity;
    bool more; /* there are some that are not told, or memory was short */
};

/* node_lock_fn; context: a struct locks. */
void locks_add(void *context, const struct node_lock *lock);
void locks_deinit(struct locks *locks);

/* {"more", "locks": [{"lock", "key", "owners", "waiters"}]}: a lock is a "row" or "gap", its key
 * null behind the last row, else text with \xNN for what is no printable ASCII. Of each owner and
 * waiter: id, mode ("shared", "exclusive"), state ("running", "wounded", "prepared"), node and
 * worker of its coordinator, age_ms by wall_us; of waiters waits_for, ids that go before it. */
json_t *locks_json(const struct locks *locks, uint64_t wall_us);

/* Of a try, as text of HORKOS LOCKS and HORKOS KILL: 16 hexadecimal digits, so that no program
 * takes it for a number and rounds it. */
void locks_id_text(uint64_t id, char text_out[17]);
bool locks_id_parse(struct bytes text, uint64_t *id_out);

#endif
