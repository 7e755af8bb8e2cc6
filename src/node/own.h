/* Ownership in the node: what transactions (txn.h's side of the node) ask of it, and what it asks
 * of them. Only files of node include it. */
#ifndef HORKOS_NODE_OWN_H
#define HORKOS_NODE_OWN_H

#include "engine/zeus/zeus.h"
#include "node/internal.h"

/* ---- own.c, for transactions ---- */

/* Who is to be told the end of a want: a transaction of a worker, by its number and generation. Of
 * nodes that want one object the one whose waiter has waited longest gets it first (R19). */
struct own_waiter {
    uint64_t since_us; /* when what it is for began */
    uint32_t worker;
    uint32_t index;
    uint32_t gen;
    uint32_t object; /* of the transaction: which of its objects this is about */
};

/* This node wants to be the object's owner (OWN_OWNER; it is created if nobody has it) or a reader
 * (OWN_READER; it is not). Any worker. The waiter is told once, by txn_told on its worker, perhaps
 * before this returns; the level may be gone again by then. hash: of the key in the space's store.
 */
void own_want(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, enum own_type type,
              struct own_waiter waiter);
/* Data with ZEUS_WANTED is free: no commit is pending over it and nobody holds it. used: something
 * was done with it; else it was only let go of. No bucket's lock is held. Any worker. */
void own_freed(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, bool used);
/* The live readers of an object that this node owns, by its entry. The caller keeps the owner from
 * changing: it holds the object locally, or its commit is pending. Any thread. */
nodeset own_readers(struct worker *w, uint8_t space, struct bytes key, uint64_t hash);
/* Whether so many live nodes have the object that what is written now outlives a minority (R15).
 * What own_readers counts on, counts here. */
bool own_replicated(struct worker *w, uint8_t space, struct bytes key, uint64_t hash);
/* Both with one look at the entry. */
nodeset own_followers(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                      bool *replicated_out);
/* The same on any thread, which is registered with the store of entries and has a view. */
struct own_eyes {
    struct node *node;
    struct store_thread *entries;
    const struct view *view;
};
nodeset own_followers_seen(const struct own_eyes *eyes, uint8_t space, struct bytes key,
                           uint64_t hash, bool *replicated_out);
/* On any thread: data that it held, with ZEUS_WANTED, is free. */
void own_freed_elsewhere(struct node *n);
/* Looks for another replica at once; who waits is woken when there is one. Any worker. */
void own_replicate(struct worker *w, uint8_t space, struct bytes key, uint64_t hash);
/* The version from which an object that is created here starts (R13). Any worker. */
uint64_t own_clock(const struct worker *w, uint8_t space);
/* This worker has nothing of dead coordinators any more in the adopted epoch (C10). Said again
 * after each change of view, in each ENGINE_OWNED space. */
void own_recovered(struct worker *w, uint8_t space);
/* Messages of ownership, routed here by input.c; a view was adopted; time; end of a poll. */
void own_message(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from);
void own_adopt(struct worker *w);
void own_poll(struct worker *w);
uint64_t own_deadline(const struct worker *w);

/* ---- txn.c, for ownership ---- */

/* The end of a want: 0 (granted), or an enum own_nack. */
void txn_told(struct worker *w, struct own_waiter waiter, uint8_t code);
/* Messages of reliable commit; a view was adopted; time; end of a poll (batches R-ACK, R-VAL). */
void txn_message(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from);
void txn_adopt(struct worker *w);
void txn_poll(struct worker *w);
uint64_t txn_deadline(const struct worker *w);

#endif
