/* Inside the RESP load: a thread and its connections. For resp_load.c and resp_client.c only. */
#ifndef HORKOS_BENCH_RESP_INTERNAL_H
#define HORKOS_BENCH_RESP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/random.h"
#include "bench/resp_load.h"
#include "bench/resp_scan.h"

#define RESP_WHY_BYTES (RESP_SCAN_LINE_MAX + 64u)

/* What a thread is told to do. */
enum resp_order { RESP_REST, RESP_FILL, RESP_RUN, RESP_END };

struct resp_thread;

struct resp_request {
    uint64_t start_ns; /* when it was meant to start */
    enum load_kind kind;
};

struct resp_client {
    struct list_link idle; /* in thread.idle: it has room for a request */
    struct resp_thread *thread;
    struct stream *stream; /* NULL: gone */
    struct resp_scan scan;
    struct resp_request *under_way; /* a ring of `pipeline` requests, the oldest at `first` */
    uint32_t first, count;
    bool half;       /* the SET of the oldest is answered, its WAIT is not */
    bool half_wrong; /* and was answered with an error */
};

struct resp_thread {
    struct resp_load *load;
    pthread_t id;
    bool started;
    uint32_t index;
    struct loop *loop;
    struct resp_client *clients; /* clients_n */
    uint32_t clients_n;
    struct list_link idle;
    struct keys keys;
    struct random random;
    struct schedule schedule;
    uint64_t fill_next, fill_end; /* keys of this thread that are still to be written */
    uint64_t under_way;           /* requests */
    uint64_t heard_ns;            /* when a reply came last */
    enum resp_order order;        /* that it follows */
    bool failed;
    char why[RESP_WHY_BYTES];
    char error[RESP_SCAN_LINE_MAX]; /* the first that a server said */
    struct resp_run run;            /* written while load.measuring */

    _Atomic uint64_t filled;
    _Atomic uint32_t done; /* the number of the last order that it has carried out */
};

struct resp_load {
    struct resp_load_config config;
    uint8_t *set; /* a SET whose key is to be filled in, WAIT included */
    uint32_t set_bytes;
    struct resp_thread threads[RESP_LOAD_THREADS_MAX];
    char error[RESP_SCAN_LINE_MAX];

    /* Orders, from the caller's thread to all; number is released after order. */
    _Atomic uint32_t order;  /* enum resp_order */
    _Atomic uint32_t number; /* counts orders */
    _Atomic bool measuring;
    _Atomic bool enough; /* RESP_RUN: start nothing new */
};

#define RESP_GET_BYTES 36u /* "*2\r\n$3\r\nGET\r\n$16\r\n" KEY "\r\n" */

uint64_t resp_now_ns(void);
/* Makes the template of SETs. HK_ERR_NOMEM. */
int resp_template_make(struct resp_load *load) __attribute__((warn_unused_result));

/* Loop, connections. HK_ERR_NOMEM, HK_ERR_IO: thread->why. On the thread itself. */
int resp_clients_open(struct resp_thread *t) __attribute__((warn_unused_result));
void resp_clients_close(struct resp_thread *t);
/* Starts what may start now. */
void resp_clients_start(struct resp_thread *t);
void resp_fail(struct resp_thread *t, const char *why);

#endif
