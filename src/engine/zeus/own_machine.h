/* What the files of the ownership machine share; nobody else includes it. own.c has the dispatcher
 * and what both sides need; own_arbiter.c REQ, INV, VAL; own_request.c this member's own request;
 * own_replay.c changes of view and arb-replay; own_messages.c the messages' form. */
#ifndef HORKOS_ENGINE_ZEUS_OWN_MACHINE_H
#define HORKOS_ENGINE_ZEUS_OWN_MACHINE_H

#include "base/assert.h"
#include "base/meta.h"
#include "engine/zeus/own.h"

/* One step. */
struct arb {
    struct own_entry *entry;
    struct own_busy *busy; /* NULL: no record is left */
    const struct own_event *event;
    const struct own_body *body; /* EV_MSG */
    struct own_effects *fx;
    bool have; /* the data is here, or this step installs it */
};

#ifdef HK_MUTANTS
static inline bool arb_rule(const struct arb *a, enum own_rule rule)
{
    return (a->event->config->rules_off >> rule & 1) == 0;
}
#else
static inline bool arb_rule(const struct arb *a, enum own_rule rule)
{
    (void)a;
    (void)rule;
    return true;
}
#endif

/* ---- own.c ---- */
struct own_effect *arb_emit(struct arb *a, enum own_fx kind, uint8_t code);
/* The message's body, to be filled; NULL: nobody is left in `to`. */
struct own_body *arb_send(struct arb *a, nodeset to, enum own_kind kind, uint64_t ts);
void arb_raise(uint64_t *clock, uint64_t version);
struct own_vector arb_masked(const struct arb *a, const struct own_vector *vector);
/* The owner and the readers. */
nodeset arb_replicas(const struct own_vector *masked);
/* Whose ACKs are needed (R2), and who gets INV and VAL. */
nodeset arb_expected(const struct arb *a, const struct own_vector *before,
                     const struct own_request *request);
/* The vector after the request (R1, R7). */
struct own_vector arb_after(const struct arb *a, const struct own_vector *before,
                            const struct own_request *request);
/* Nobody had the object before: the request creates it. */
bool arb_creates(const struct arb *a, const struct own_vector *before);
/* Whoever had it before is no member any more: there is nothing that could be given. */
bool arb_lost(const struct arb *a, const struct own_vector *before);
/* The requester's process is a member. */
bool arb_requester_lives(const struct arb *a, const struct own_request *request);
bool arb_same(const struct own_request *a, const struct own_request *b);
bool arb_pending(const struct arb *a);
/* Requests may be sent and driven (R8, R10): where nothing is pending all may have SETTLED before
 * the commits of the dead are finished. */
bool arb_settled(const struct arb *a);
/* Of a retry, with jitter; doubles with every try. */
uint64_t arb_later(const struct arb *a, uint32_t tries);

/* ---- own_arbiter.c ---- */
void arb_req(struct arb *a);
void arb_inv(struct arb *a);
void arb_val(struct arb *a);
void arb_known(struct arb *a); /* ENTRY */
/* ACKs the pending request, now or when the data is free (R4). */
void arb_answer(struct arb *a, uint8_t to, bool to_replayer);
void arb_freed(struct arb *a);
/* The vector counts from now on; what it makes of this member. */
void arb_take(struct arb *a, uint64_t ts, const struct own_vector *vector, bool destroyed);
/* Nothing is known of the object any more (R13). */
void arb_forget(struct arb *a, uint64_t ts);
/* The same of a destroyed object; a newcomer knows until it serves that there is nothing. */
void arb_bury(struct arb *a, uint64_t ts);
void arb_look(struct arb *a); /* LOOK */
void arb_settle_pending(struct arb *a);
/* VAL of what is applied here, to who asks again (R9). */
void arb_tell(struct arb *a, nodeset to);

/* ---- own_request.c ---- */
void arb_want(struct arb *a, const struct own_request *want);
void arb_want_ack(struct arb *a);
void arb_want_nack(struct arb *a);
void arb_want_resp(struct arb *a);
void arb_want_view(struct arb *a);
/* Sends what waits, if it may. */
void arb_want_go(struct arb *a);
/* A request that waits may have been fulfilled meanwhile. */
void arb_want_look(struct arb *a);

/* ---- own_replay.c ---- */
void arb_view(struct arb *a);
void arb_go(struct arb *a);
void arb_timer(struct arb *a);
void arb_replay_ack(struct arb *a);
void arb_replay_nack(struct arb *a);

#endif
