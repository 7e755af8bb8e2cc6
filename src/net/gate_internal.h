/* Inside of the gate: what its files share. Everything belongs to the gate's thread, but for
 * what is marked atomic. */
#ifndef HORKOS_NET_GATE_INTERNAL_H
#define HORKOS_NET_GATE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/random.h"
#include "net/address.h"
#include "net/gate.h"

#define GATE_LISTENERS_MAX 16u
#define GATE_CALLS_MAX 4u /* calls in progress to one node, while it answers */
/* Somebody is told of a node when so many calls in a row failed, for so long: nodes that start
 * together do not find each other at once. */
#define GATE_REPORT_FAILURES 3u
#define GATE_REPORT_US UINT64_C(1000000)
#define GATE_LOOKUP_US UINT64_C(5000000) /* a name is looked up again after so long, if need be */
#define GATE_SUMMARY_FIRST_US UINT64_C(1000000)
#define GATE_SUMMARY_US UINT64_C(60000000)

/* What an epoll event is about: the first member of each struct that stands behind one. */
enum gate_source { SOURCE_WAKE, SOURCE_LISTENER, SOURCE_SESSION };

struct gate_listener {
    enum gate_source source;
    int fd; /* -1: closed */
    bool peers;
    bool paused; /* no descriptors: accepts nothing for a while */
    struct gate_address address;
};

/* A connection whose handshake is under way, of either side. */
struct gate_session {
    enum gate_source source;
    struct list_link link; /* in gate.callers or gate.strangers */
    int fd;
    bool connecting;
    bool calls; /* we called: node and pair say whom */
    uint8_t node;
    uint32_t pair;
    uint64_t deadline_us;
    struct handshake handshake;
    uint8_t in[HANDSHAKE_MESSAGE_MAX], out[HANDSHAKE_MESSAGE_MAX];
    uint32_t in_n, out_n, out_at;
    char address[ADDRESS_TEXT_MAX];
};

enum gate_pair_state { PAIR_WAITS, PAIR_CALLING, PAIR_STANDS };

/* The connection of one local worker with one remote worker that is ours to make. */
struct gate_pair {
    enum gate_pair_state state;
    uint64_t since_us;   /* STANDS: since when */
    uint64_t next_us;    /* WAITS: not before */
    uint64_t backoff_us; /* grows when the connection breaks soon after it was made */
};

struct gate_lookup;

/* A node that we call. */
struct gate_callee {
    struct gate_pair *pairs; /* [remote worker * local workers + local worker]; NULL: not ours */
    uint32_t remote_workers; /* 0: not known yet; the pair (0, 0) asks */
    uint32_t calling;        /* calls in progress */
    uint32_t cursor;         /* where the search for the next pair begins */
    uint32_t failures;       /* in a row */
    uint64_t failing_us;     /* since when */
    uint64_t next_us;        /* after a failure: not before */
    uint64_t backoff_us;
    bool reported; /* an operator was told that it cannot be reached */
    struct gate_lookup *lookup;
    /* Of the last look-up of a name. */
    bool known;
    uint64_t known_us;
    struct sockaddr_storage at;
    socklen_t at_n;
};

struct gate {
    struct gate_config config;
    pthread_t thread;
    int epoll_fd, wake_fd;
    enum gate_source wake_source; /* what stands behind the event of wake_fd */
    struct gate_listener listeners[GATE_LISTENERS_MAX];
    uint32_t listeners_n;
    uint64_t resume_us;  /* when paused listeners accept again; UINT64_MAX: none is paused */
    uint64_t starved_us; /* when lack of descriptors was reported last; 0: never */

    struct list_link callers, strangers; /* struct gate_session, in the order of arrival */
    uint32_t strangers_n;
    struct gate_callee callees[NODES_MAX];
    struct random random; /* jitter */

    /* Strangers that were refused since the last summary. */
    uint64_t refused_since[HANDSHAKE_REFUSALS], timed_out_since, crowded_since;
    char refused_last[ADDRESS_TEXT_MAX];
    uint64_t summary_due_us;  /* UINT64_MAX: nothing to tell */
    uint64_t summary_last_us; /* 0: never */

    /* Said by others: relaxed stores, then a write to wake_fd; the read of wake_fd orders them. */
    atomic_bool stop, refuse_clients;
    /* Bit r of lost[node * WORKERS + l]: the connection of remote worker r and local worker l. */
    _Atomic uint64_t lost[NODES_MAX * HANDSHAKE_WORKERS_MAX];

    /* Counted by the gate's thread, read by any: each for itself, relaxed. */
    struct {
        _Atomic uint64_t clients, peers, calls, calls_failed;
        _Atomic uint64_t refused[HANDSHAKE_REFUSALS];
        _Atomic uint64_t timed_out, crowded;
    } count;
};

static inline void gate_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- gate_listen.c ---- */

/* HK_ERR_IO: error_out says which address, why, and what to do. */
int gate_listen(struct gate *gate, char *error_out, uint32_t size);
void gate_unlisten(struct gate *gate, bool clients_only);

/* ---- gate_accept.c ---- */

void gate_accept(struct gate *gate, struct gate_listener *listener, uint64_t now_us);
/* Lets paused listeners accept again. */
void gate_resume(struct gate *gate, uint64_t now_us);

/* ---- gate_session.c ---- */

/* Takes over fd; address: of the other side. NULL: no memory, fd is still the caller's. The caller
 * prepares the handshake, and calls gate_session_watch. */
struct gate_session *gate_session_create(struct gate *gate, int fd, const char *address,
                                         uint64_t now_us);
/* False: the system refuses. */
bool gate_session_watch(struct gate *gate, struct gate_session *session);
void gate_session_event(struct gate *gate, struct gate_session *session, uint32_t events,
                        uint64_t now_us);
/* Closes the socket, if it was not handed on, and frees. */
void gate_session_destroy(struct gate *gate, struct gate_session *session);
/* Gives up those whose time has passed. */
void gate_sessions_expire(struct gate *gate, uint64_t now_us);
/* When the next one's will. */
uint64_t gate_sessions_deadline(const struct gate *gate);

/* ---- gate_call.c ---- */

/* HK_ERR_NOMEM. */
int gate_calls_init(struct gate *gate);
void gate_calls_deinit(struct gate *gate);
/* Begins the calls that are due; returns when the next one will be. */
uint64_t gate_calls_begin(struct gate *gate, uint64_t now_us);
/* A call ended. why NULL: it stands and is the peer's now; `workers` of the peer. */
void gate_call_ended(struct gate *gate, uint8_t node, uint32_t pair, const char *why,
                     uint32_t workers, uint64_t now_us);
/* Takes up what gate_lost said. */
void gate_calls_lost(struct gate *gate, uint64_t now_us);

/* ---- gate_lookup.c ---- */

/* Looks a name up on a thread of its own, which writes to wake_fd when it is done and which nobody
 * has to wait for. NULL: the system has no thread or memory. */
struct gate_lookup *gate_lookup_begin(const char *address, int wake_fd);
/* False: not done yet. True: it is gone; *why_out NULL and the address, or why there is none
 * (static). */
bool gate_lookup_end(struct gate_lookup *lookup, struct sockaddr_storage *at_out, socklen_t *n_out,
                     const char **why_out);
void gate_lookup_abandon(struct gate_lookup *lookup);

/* ---- gate_report.c ---- */

void gate_report(struct gate *gate, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A stranger was refused: counted, and told in the next summary. */
void gate_refused(struct gate *gate, enum handshake_refusal refusal, const char *address,
                  uint64_t now_us);
void gate_timed_out(struct gate *gate, const char *address, uint64_t now_us);
void gate_crowded(struct gate *gate, const char *address, uint64_t now_us);
void gate_summarize(struct gate *gate, uint64_t now_us);

#endif
