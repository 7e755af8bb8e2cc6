/* Epochs of the hot set of a space whose keys have homes: what hot_epoch.c (the leader) and
 * hot_member.c (everybody) share. Worker 0's. docs/HOTSET.md has the protocol. */
#ifndef HORKOS_NODE_HOT_EPOCH_H
#define HORKOS_NODE_HOT_EPOCH_H

#include "node/hot_list.h"
#include "node/hot_set.h"
#include "node/internal.h"

#define HOT_CACHE_MIN 64u
#define HOT_CACHE_MAX (1u << 20)
#define HOT_CACHE_SHARE 1000u /* one key of so many, unless cache_keys says how many */

/* MSG_HOT's flags: what it is. In brackets who sends it. */
enum hot_word {
    HOT_WORD_ASK = 1, /* [leader] arg: round; ts: from which entry on; slot: keys that the set may
                         have; gen: `settled`; value: keys that it has, 4 bytes */
    HOT_WORD_LIST,   /* [member] arg: round; ts: the entry to go on with, 0: that is all; slot, gen:
                         keys in its store, lower half first; value: hot_list.h */
    HOT_WORD_CHANGE, /* [leader, to the home] key; ts: enum hot_code; arg: generation */
    HOT_WORD_ANSWER, /* [home] key, ts, arg as they came; slot: enum hot_answer */
    HOT_WORDS
};

enum hot_answer {
    HOT_ANSWER_DONE,
    HOT_ANSWER_AGAIN,  /* not yet */
    HOT_ANSWER_ABSENT, /* there is no such key to enter */
    HOT_ANSWERS
};

enum hot_phase {
    HOT_REST,   /* until the next epoch */
    HOT_LEARN,  /* walks its own store for what is cached */
    HOT_LISTS,  /* waits for the members' lists */
    HOT_CHANGE, /* keys leave, then others enter */
};

struct hot_epoch {
    /* Everybody's. */
    uint32_t settled; /* members admitted up to this epoch of the view have all entries, or will */
    uint64_t fetched; /* the round whose list is being fetched; 0: none */
    struct hot_tally list;
    void *list_memory;
    uint32_t ranked;   /* entries of it */
    uint32_t set_told; /* keys of the set, as node_stats has them */

    /* The leader's. */
    bool leads;
    bool told;            /* SLOTS_HOT 1: no slot begins to move */
    uint8_t phase;        /* enum hot_phase */
    uint32_t epoch;       /* of the view in which it leads */
    uint32_t began;       /* the epoch of the view in which the phase began */
    bool announces;       /* all keys enter anew */
    uint64_t map_version; /* of the map by which it has learned the set */
    uint64_t cursor;      /* of the walk */
    uint64_t due_us;      /* of the next epoch, or of the lists' end */
    uint64_t began_us;    /* the epoch */
    uint64_t look_us;     /* before that it need not look whether the map rests */
    uint32_t learned;     /* epochs since it did */
    bool says;            /* each key of the set is to be said again */
    uint32_t rounds;
    uint64_t round;
    uint64_t generation;
    nodeset waiting; /* whose lists are not complete */
    uint32_t from[NODES_MAX];
    uint64_t keys;   /* in the members' stores */
    uint32_t wanted; /* keys that the set may have */
    struct hot_tally tally;
    void *tally_memory;
    struct hot_set set;
    struct list_link todo; /* keys whose home was not asked: those that leave, then the others */
    struct list_link open; /* keys whose home was */
    uint32_t open_n;
    uint32_t leaving;     /* keys in todo and open that leave */
    uint64_t next_due_us; /* no key in open is to be asked again before */
};

/* hot_member.c */
/* What this node knows, as a list of up to 2 * wanted keys and some more: makes h->list. False: no
 * memory. */
bool hot_member_list(struct worker *w, uint8_t space, struct hot_epoch *h, uint32_t wanted);
void hot_member_list_free(struct hot_epoch *h);
uint64_t hot_member_keys(const struct space *space);
/* At the key's home, here: one step nearer to what the leader wishes. */
enum hot_answer hot_member_change(struct worker *w, uint8_t space, struct bytes key,
                                  enum hot_code code, uint64_t gen);
void hot_member_message(struct worker *w, struct hot_epoch *h, const struct msg *msg, uint8_t from);
void hot_send(struct worker *w, uint8_t to, const struct msg *msg);

/* hot_epoch.c: words that are for the leader. */
void hot_leader_message(struct worker *w, struct hot_epoch *h, const struct msg *msg, uint8_t from);

#endif
