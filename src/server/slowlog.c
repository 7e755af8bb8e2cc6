#include "server/slowlog.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"

/* Arguments come cut; what says that one was cut needs a little room beside it. */
#define SLOW_ARGS_MAX RESP_SLOW_ARGUMENTS
#define SLOW_ARG_BYTES_MAX (RESP_SLOW_ARGUMENT_BYTES + 64u)
#define SLOW_TEXT_MAX 256u

struct entry {
    struct list_link link;
    struct resp_slow slow; /* its pointers lead into bytes */
    struct bytes args[SLOW_ARGS_MAX];
    uint8_t bytes[];
};

struct slowlog {
    pthread_mutex_t lock;
    struct list_link entries; /* newest first */
    uint32_t n, max;
    uint64_t next_id;
};

int slowlog_create(uint32_t max, struct slowlog **slowlog_out)
{
    struct slowlog *slowlog = calloc(1, sizeof *slowlog);
    if (slowlog == NULL) {
        return HK_ERR_NOMEM;
    }
    HK_ASSERT(pthread_mutex_init(&slowlog->lock, NULL) == 0);
    list_init(&slowlog->entries);
    slowlog->max = max;
    *slowlog_out = slowlog;
    return HK_OK;
}

static void trim(struct slowlog *slowlog, uint32_t keep)
{
    while (slowlog->n > keep) {
        struct entry *oldest = list_entry(slowlog->entries.prev, struct entry, link);
        list_remove(&oldest->link);
        free(oldest);
        slowlog->n--;
    }
}

void slowlog_destroy(struct slowlog *slowlog)
{
    trim(slowlog, 0);
    (void)pthread_mutex_destroy(&slowlog->lock);
    free(slowlog);
}

void slowlog_set_max(struct slowlog *slowlog, uint32_t max)
{
    (void)pthread_mutex_lock(&slowlog->lock);
    slowlog->max = max;
    trim(slowlog, max);
    (void)pthread_mutex_unlock(&slowlog->lock);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static const uint8_t *keep(struct entry *e, size_t *used, const void *from, size_t n)
{
    uint8_t *to = e->bytes + *used;
    if (n > 0) {
        memcpy(to, from, n);
    }
    *used += n;
    return to;
}

static size_t text_length(const char *text)
{
    return text == NULL ? 0 : strnlen(text, SLOW_TEXT_MAX);
}

static const char *keep_text(struct entry *e, size_t *used, const char *text)
{
    const uint8_t *kept = keep(e, used, text, text_length(text));
    (void)keep(e, used, "", 1);
    return (const char *)kept;
}

/* A copy that stands by itself; NULL: no memory. */
static struct entry *copy(const struct resp_slow *slow)
{
    uint32_t args_n = least(slow->args_n, SLOW_ARGS_MAX);
    size_t size = text_length(slow->address) + text_length(slow->name) + 2;
    size_t used = 0;
    for (uint32_t i = 0; i < args_n; i++) {
        size += least(slow->args[i].n, SLOW_ARG_BYTES_MAX);
    }
    struct entry *e = malloc(sizeof *e + size);
    if (e == NULL) {
        return NULL;
    }
    e->slow = *slow;
    e->slow.args = e->args;
    e->slow.args_n = args_n;
    for (uint32_t i = 0; i < args_n; i++) {
        uint32_t n = least(slow->args[i].n, SLOW_ARG_BYTES_MAX);
        e->args[i] = bytes_of(keep(e, &used, slow->args[i].at, n), n);
    }
    e->slow.address = keep_text(e, &used, slow->address);
    e->slow.name = keep_text(e, &used, slow->name);
    HK_ASSERT(used == size);
    return e;
}

void slowlog_add(struct slowlog *slowlog, const struct resp_slow *slow)
{
    struct entry *e = copy(slow);
    if (e == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&slowlog->lock);
    e->slow.id = slowlog->next_id++;
    list_push_front(&slowlog->entries, &e->link);
    slowlog->n++;
    trim(slowlog, slowlog->max);
    (void)pthread_mutex_unlock(&slowlog->lock);
}

void slowlog_get(struct slowlog *slowlog, int64_t n, struct resp_out *out)
{
    (void)pthread_mutex_lock(&slowlog->lock);
    uint32_t left = n < 0 || n > (int64_t)slowlog->n ? slowlog->n : (uint32_t)n;
    resp_out_array(out, left);
    list_each(link, &slowlog->entries)
    {
        if (left-- == 0) {
            break;
        }
        resp_slow_write(&list_entry(link, struct entry, link)->slow, out);
    }
    (void)pthread_mutex_unlock(&slowlog->lock);
}

uint64_t slowlog_length(struct slowlog *slowlog)
{
    (void)pthread_mutex_lock(&slowlog->lock);
    uint64_t n = slowlog->n;
    (void)pthread_mutex_unlock(&slowlog->lock);
    return n;
}

void slowlog_reset(struct slowlog *slowlog)
{
    (void)pthread_mutex_lock(&slowlog->lock);
    trim(slowlog, 0);
    (void)pthread_mutex_unlock(&slowlog->lock);
}
