/* Lotus's two-phase commit as two pure machines: a transaction at its coordinator, and a try at a
 * memory server. docs/protocols/lotus.md has their tables and the rules C1 to C7, P1 to P10.
 * Both are plain memory; zero is idle, and free. */
#ifndef HORKOS_ENGINE_LOTUS_COMMIT_H
#define HORKOS_ENGINE_LOTUS_COMMIT_H

#include "engine/lotus/lotus.h"

/* ---- The coordinator ---- */

enum lotus_state {
    LOTUS_IDLE,
    LOTUS_WHOLE,
    LOTUS_EXECUTE,
    LOTUS_PREPARE,
    LOTUS_COMMIT,
    LOTUS_STATES
};
extern const char *const lotus_state_names[LOTUS_STATES];

struct lotus_txn {
    nodeset homes;   /* asked in this try, and not refused by */
    nodeset waits;   /* whose answers are due */
    nodeset written; /* of homes: where something is to be written (known once evaluated) */
    nodeset unsure;  /* C6: of tries that are over: asked to prepare writes, nothing heard since */
    uint8_t state;   /* enum lotus_state */
    uint8_t word;    /* enum lotus_word: the first of this round that is not OK */
    bool writes;     /* WHOLE, FINISH: it may write */
    bool orphan;     /* its client is gone */
    uint32_t reserved;
};

/* The last of a step's effects is one of AGAIN, FAIL and END if the machine has become IDLE, and
 * only then; but for lotus_cancel. */
enum lotus_fx {
    LOTUS_FX_WHOLE,   /* to the one of `to` */
    LOTUS_FX_EXECUTE, /* to each of `to`: this round's items */
    LOTUS_FX_NEXT,    /* all was answered: lotus_ask again, or evaluate and lotus_evaluated */
    LOTUS_FX_FINISH,  /* to the one of `to`, with its writes */
    LOTUS_FX_PREPARE, /* to each of `to`, the participants, with its writes; a number is due */
    LOTUS_FX_ANSWER,  /* the client hears it: it has taken effect, or will everywhere */
    LOTUS_FX_COMMIT,  /* to each of `to` */
    LOTUS_FX_ABORT,   /* to each of `to` */
    LOTUS_FX_AGAIN,   /* nothing happened: a new try, after a pause; lotus_txn.word says why. Who
                         gives up instead answers lotus_error */
    LOTUS_FX_FAIL,    /* the client hears an error: err */
    LOTUS_FX_END,     /* all is said and done */
};
struct lotus_effect {
    uint8_t kind;
    int8_t err; /* enum hk_err */
    nodeset to;
};
#define LOTUS_EFFECTS_MAX 6u
struct lotus_effects {
    uint32_t n;
    struct lotus_effect e[LOTUS_EFFECTS_MAX];
};

/* IDLE; home: has all of it. */
void lotus_whole(struct lotus_txn *t, uint8_t home, bool writes, struct lotus_effects *fx);
/* A round of EXECUTE; IDLE, or after FX_NEXT. */
void lotus_ask(struct lotus_txn *t, nodeset to, struct lotus_effects *fx);
/* An answer to WHOLE or FINISH (phase: LOTUS_WHOLE), EXECUTE, PREPARE, COMMIT; one that is not due
 * is ignored. TOOBIG and NOMEM fail, other words but OK try again. */
void lotus_answered(struct lotus_txn *t, const struct lotus_config *config, enum lotus_state phase,
                    uint8_t from, enum lotus_word word, struct lotus_effects *fx);
/* After FX_NEXT: where something is written. */
void lotus_evaluated(struct lotus_txn *t, const struct lotus_config *config, nodeset written,
                     struct lotus_effects *fx);
/* Evaluation failed (memory, size): the try ends, FX_FAIL with err. */
void lotus_give_up(struct lotus_txn *t, const struct lotus_config *config, int err,
                   struct lotus_effects *fx);
/* These processes, of which it has asked some, are in the view no more. IDLE, too (C6). */
void lotus_gone(struct lotus_txn *t, const struct lotus_config *config, nodeset gone,
                struct lotus_effects *fx);
/* The client is gone, or its time is over. True: the machine is IDLE now (FX_ABORT perhaps).
 * False: it goes on, and says FX_END when it is over; nobody is to be answered. */
bool lotus_cancel(struct lotus_txn *t, struct lotus_effects *fx);
/* C6: what a client hears that is to hear of err, which says that nothing happened: that, or
 * HK_ERR_UNKNOWN. */
int lotus_error(const struct lotus_txn *t, const struct lotus_config *config, int err);
void lotus_txn_check(const struct lotus_txn *t);

/* ---- A try at a memory server ---- */

enum part_state { PART_FREE, PART_RUNNING, PART_PREPARED, PART_DOUBT, PART_COMMITTED, PART_STATES };
extern const char *const part_state_names[PART_STATES];

struct lotus_part {
    nodeset others;  /* PREPARED and later: the other participants that live */
    nodeset waits;   /* DOUBT: who has not said PREPARED. COMMITTED, coordinator gone: who has not
                       said RESOLVED */
    uint64_t number; /* of the PREPARE */
    uint8_t state;   /* enum part_state */
    bool alone;      /* its coordinator is gone */
    uint8_t reserved[6];
};

enum part_fx {
    PART_FX_ANSWER,   /* to the coordinator: word, for the event's message */
    PART_FX_INSTALL,  /* what was kept is written */
    PART_FX_RELEASE,  /* all locks */
    PART_FX_ASK,      /* to each of `to` */
    PART_FX_RESOLVED, /* to each of `to`; code: 1, as an answer, or 0 */
    PART_FX_TOLD,     /* to the asker: code */
    PART_FX_FREE,     /* forget the try */
};
struct part_effect {
    uint8_t kind;
    uint8_t code; /* enum lotus_word, enum lotus_told */
    nodeset to;
};
#define PART_EFFECTS_MAX 6u
struct part_effects {
    uint32_t n;
    struct part_effect e[PART_EFFECTS_MAX];
};

/* Its first EXECUTE or WHOLE. */
void part_begin(struct lotus_part *p);
/* RUNNING (refused in whichever way, wounded, lease over, replaced): releases, frees; nothing is
 * answered. */
void part_drop(struct lotus_part *p, struct part_effects *fx);
/* WHOLE or FINISH has all it needs: won says whether the status word became PREPARED. */
void part_finish(struct lotus_part *p, bool won, struct part_effects *fx);
/* PREPARE. won as above (of a RUNNING try). participants: this node among them; of the others those
 * whose processes, of the epoch in which PREPARE was sent, are not known to be gone. */
void part_prepare(struct lotus_part *p, bool won, uint64_t number, nodeset participants,
                  uint8_t self, struct part_effects *fx);
/* COMMIT, also of a try that is not known (p FREE): then only the answer. */
void part_commit(struct lotus_part *p, struct part_effects *fx);
/* ABORT; a try whose coordinator is gone hears nothing of it any more. */
void part_abort(struct lotus_part *p, struct part_effects *fx);
/* A view was adopted: alone says that the coordinator's process is no member of it. gone: of the
 * participants, those whose process of the epoch in which PREPARE was sent is no member of it, if
 * it is not an earlier view. Said again in each later view. */
void part_adopt(struct lotus_part *p, const struct lotus_config *config, bool alone, nodeset gone,
                struct part_effects *fx);
/* `done` of its coordinator: outcomes of numbers below are known to all. */
void part_done(struct lotus_part *p, const struct lotus_config *config, uint64_t done,
               struct part_effects *fx);
/* ASK; p may be FREE (not known). */
void part_asked(struct lotus_part *p, struct part_effects *fx);
void part_told(struct lotus_part *p, uint8_t from, enum lotus_told told, struct part_effects *fx);
/* RESOLVED; of a FREE one: it is said back unless it is an answer itself. */
void part_resolved(struct lotus_part *p, uint8_t from, bool answer, struct part_effects *fx);
void part_check(const struct lotus_part *p);

#endif
