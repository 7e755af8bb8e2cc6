/* What the files of embed share. */
#ifndef HORKOS_EMBED_INTERNAL_H
#define HORKOS_EMBED_INTERNAL_H

#include "horkos.h"

#include "server/config.h"
#include "server/local.h"
#include "server/server.h"

#define OWN_LISTS 256u /* kinds of keys that own updates in flight are told apart by */

struct hk_node {
    struct server *server;
    uint32_t id;
};

/* What belongs to a slot of the session's rings. */
struct hk_slot {
    uint8_t *memory; /* the operation's bytes, of one that does not wait */
    size_t memory_bytes;
    hk_done *done;
    void *context;
    struct hk_result *into; /* who waits for it wants its result there ... */
    struct hk_read *read;   /* ... or here, for a key of a batch; both NULL: `done` gets it */
    struct hk_result result;
    uint8_t own; /* its list in session.own, if it is an update */
};

/* Slots are in `spare`, in flight, or in `ready`. */
struct hk_session {
    struct local_session *local;
    uint32_t space;
    uint32_t slots_n;   /* in_flight_max and one for the operation that waits */
    uint32_t async_max; /* in_flight_max */
    uint32_t async_n;   /* begun, and `done` not called */
    uint32_t waited_n;  /* of those that wait: not answered yet */
    uint32_t updates_n; /* in flight */
    uint32_t spare_n;
    uint32_t ready_first, ready_n;
    uint8_t spare[LOCAL_SLOTS_MAX];
    uint8_t ready[LOCAL_SLOTS_MAX]; /* answered, in order: a ring */
    uint8_t own[OWN_LISTS];         /* updates in flight, by a hash of their keys */
    struct hk_slot slots[LOCAL_SLOTS_MAX];
};

/* ---- config.c ---- */

/* A node's configuration from the program's. error_out (size bytes) says what is wrong. */
int embed_config(const struct hk_config *from, struct config *config_out, char *error_out,
                 uint32_t size) __attribute__((warn_unused_result));

/* ---- operation.c ---- */

/* HK_OK, or what is wrong with the bytes of an operation. */
int operation_bytes(struct hk_bytes bytes, size_t most) __attribute__((warn_unused_result));
/* Fills the slot and hands it to the worker; on an error the slot is spare again. */
int operation_begin(struct hk_session *s, uint32_t slot, const struct op *op, void *buffer,
                    size_t capacity) __attribute__((warn_unused_result));
/* A spare slot; there is one. */
uint32_t operation_slot(struct hk_session *s);
void operation_free(struct hk_session *s, uint32_t slot);
/* The slot has its result: it waits for hk_session_poll. */
void operation_ready(struct hk_session *s, uint32_t slot);
/* Takes all answers that have come. */
void operation_take(struct hk_session *s);
/* Waits until waited_n is at most that. */
void operation_wait(struct hk_session *s, uint32_t waited_n);
/* Runs an operation to its result. */
int operation_run(struct hk_session *s, const struct op *op, void *buffer, size_t capacity,
                  struct hk_result *result_out) __attribute__((warn_unused_result));
/* Begins one that does not wait: with bytes of its own. */
int operation_start(struct hk_session *s, const struct op *op, void *buffer, size_t capacity,
                    hk_done *done, void *context) __attribute__((warn_unused_result));
/* Whether an update of this session on the key may be in flight. */
bool operation_own(const struct hk_session *s, struct bytes key);

#endif
