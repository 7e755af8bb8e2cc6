#include "server/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"

#define ADDRESS_BYTES 160u
#define LIBRARY_BYTES 128u
#define COMMAND_WORDS 4u
#define COMMAND_BYTES (8u * COMMAND_WORDS)
#define BUCKETS 4096u /* of ids, a power of two */

struct registry_entry {
    struct list_link link;       /* in registry.entries; under its lock */
    struct registry_entry *next; /* in its bucket; under the lock */
    uint32_t worker;
    uint64_t id, created_us;

    /* Under the registry's lock. */
    char address[ADDRESS_BYTES], local[ADDRESS_BYTES];
    char name[RESP_NAME_MAX + 1], user[RESP_USER_MAX + 1];
    char library[LIBRARY_BYTES], library_version[LIBRARY_BYTES];
    uint32_t space, resp;
    bool no_evict, no_touch;

    /* Written by the owner, read by anybody. Relaxed: each figure stands for itself. */
    _Atomic uint64_t last_us, input_bytes, output_bytes, commands, queued;
    /* The command's name. `version` is odd while the owner writes; a reader that saw the same even
     * version before and after has seen one name. The words' release stores and acquire loads pair:
     * whoever sees a new word sees the odd version before it. */
    _Atomic uint32_t version;
    _Atomic uint64_t command[COMMAND_WORDS];

    /* Set by whoever kills, seen by the owner. Relaxed: registry.kills orders it. */
    _Atomic bool killed;
};

_Static_assert(sizeof(struct registry_entry) <= 1024, "registry.h promises this bound");

struct registry {
    pthread_mutex_t lock;
    struct list_link entries; /* in the order of arrival */
    struct registry_entry *by_id[BUCKETS];
    /* Release by registry_kill, after the marks; acquire by the owner in registry_kills. */
    _Atomic bool kills[REGISTRY_WORKERS_MAX];
};

static struct registry_entry **bucket_of(struct registry *registry, uint64_t id)
{
    return &registry->by_id[id & (BUCKETS - 1)];
}

int registry_create(struct registry **registry_out)
{
    struct registry *registry = calloc(1, sizeof *registry);
    if (registry == NULL) {
        return HK_ERR_NOMEM;
    }
    HK_ASSERT(pthread_mutex_init(&registry->lock, NULL) == 0);
    list_init(&registry->entries);
    *registry_out = registry;
    return HK_OK;
}

void registry_destroy(struct registry *registry)
{
    HK_ASSERT(list_empty(&registry->entries));
    (void)pthread_mutex_destroy(&registry->lock);
    free(registry);
}

static void copy_text(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from == NULL ? "" : from);
}

/* Under the lock, or before others know the entry. */
static void take_slow_changes(struct registry_entry *e, const struct resp_conn_info *info)
{
    copy_text(e->name, sizeof e->name, info->name);
    copy_text(e->user, sizeof e->user, info->user);
    copy_text(e->library, sizeof e->library, info->library);
    copy_text(e->library_version, sizeof e->library_version, info->library_version);
    e->space = info->space;
    e->resp = info->resp;
    e->no_evict = info->no_evict;
    e->no_touch = info->no_touch;
}

static void write_command(struct registry_entry *e, const char *name)
{
    uint64_t words[COMMAND_WORDS] = {0};
    uint32_t version = atomic_load_explicit(&e->version, memory_order_relaxed);
    if (name != NULL) {
        memcpy(words, name, strnlen(name, COMMAND_BYTES - 1));
    }
    atomic_store_explicit(&e->version, version + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < COMMAND_WORDS; i++) {
        atomic_store_explicit(&e->command[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&e->version, version + 2, memory_order_release);
}

static void read_command(const struct registry_entry *e, char name_out[COMMAND_BYTES])
{
    uint64_t words[COMMAND_WORDS];
    uint32_t before, after;
    do {
        before = atomic_load_explicit(&e->version, memory_order_acquire);
        for (uint32_t i = 0; i < COMMAND_WORDS; i++) {
            words[i] = atomic_load_explicit(&e->command[i], memory_order_acquire);
        }
        after = atomic_load_explicit(&e->version, memory_order_relaxed);
    } while (before != after || (before & 1) != 0);
    memcpy(name_out, words, COMMAND_BYTES);
}

static void set(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static void take_figures(struct registry_entry *e, const struct resp_conn_info *info)
{
    set(&e->last_us, info->last_us);
    set(&e->input_bytes, info->input_bytes);
    set(&e->output_bytes, info->output_bytes);
    set(&e->commands, info->commands);
    set(&e->queued, (uint64_t)info->queued);
    write_command(e, info->command);
}

int registry_add(struct registry *registry, const struct resp_conn *conn, uint32_t worker,
                 struct registry_entry **entry_out)
{
    HK_ASSERT(worker < REGISTRY_WORKERS_MAX);
    struct resp_conn_info info;
    struct registry_entry *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return HK_ERR_NOMEM;
    }
    resp_conn_info(conn, &info);
    e->worker = worker;
    e->id = info.id;
    e->created_us = info.created_us;
    copy_text(e->address, sizeof e->address, info.address);
    copy_text(e->local, sizeof e->local, info.local);
    take_slow_changes(e, &info);
    take_figures(e, &info);
    (void)pthread_mutex_lock(&registry->lock);
    list_push_back(&registry->entries, &e->link);
    e->next = *bucket_of(registry, e->id);
    *bucket_of(registry, e->id) = e;
    (void)pthread_mutex_unlock(&registry->lock);
    *entry_out = e;
    return HK_OK;
}

void registry_remove(struct registry *registry, struct registry_entry *entry)
{
    (void)pthread_mutex_lock(&registry->lock);
    list_remove(&entry->link);
    struct registry_entry **at = bucket_of(registry, entry->id);
    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
    (void)pthread_mutex_unlock(&registry->lock);
    free(entry);
}

void registry_update(struct registry *registry, const struct resp_conn *conn)
{
    struct resp_conn_info info;
    resp_conn_info(conn, &info);
    (void)pthread_mutex_lock(&registry->lock);
    struct registry_entry *e = *bucket_of(registry, info.id);
    while (e != NULL && e->id != info.id) {
        e = e->next;
    }
    if (e != NULL) { /* a connection may say HELLO to itself before it was added */
        take_slow_changes(e, &info);
        take_figures(e, &info);
    }
    (void)pthread_mutex_unlock(&registry->lock);
}

void registry_touch(struct registry_entry *entry, const struct resp_conn *conn)
{
    struct resp_conn_info info;
    resp_conn_info(conn, &info);
    take_figures(entry, &info);
}

/* Under the lock; the command's name goes to `command`. */
static struct resp_conn_info info_of(const struct registry_entry *e, char command[COMMAND_BYTES])
{
    read_command(e, command);
    return (struct resp_conn_info){
        .id = e->id,
        .created_us = e->created_us,
        .last_us = get(&e->last_us),
        .queued = (int64_t)get(&e->queued),
        .address = e->address,
        .local = e->local,
        .name = e->name,
        .user = e->user,
        .library = e->library,
        .library_version = e->library_version,
        .command = command[0] == '\0' ? NULL : command,
        .space = e->space,
        .resp = e->resp,
        .commands = get(&e->commands),
        .input_bytes = get(&e->input_bytes),
        .output_bytes = get(&e->output_bytes),
        .no_evict = e->no_evict,
        .no_touch = e->no_touch,
    };
}

void registry_list(struct registry *registry, const struct resp_client_filter *filter,
                   uint64_t now_us, struct resp_out *text)
{
    (void)pthread_mutex_lock(&registry->lock);
    list_each(link, &registry->entries)
    {
        char command[COMMAND_BYTES];
        struct resp_conn_info info =
            info_of(list_entry(link, struct registry_entry, link), command);
        if (resp_client_matches(filter, &info, now_us)) {
            resp_client_line(&info, now_us, text);
        }
    }
    (void)pthread_mutex_unlock(&registry->lock);
}

uint32_t registry_kill(struct registry *registry, const struct resp_client_filter *filter,
                       uint64_t now_us)
{
    uint32_t n = 0;
    (void)pthread_mutex_lock(&registry->lock);
    list_each(link, &registry->entries)
    {
        struct registry_entry *e = list_entry(link, struct registry_entry, link);
        char command[COMMAND_BYTES];
        struct resp_conn_info info = info_of(e, command);
        if (resp_client_matches(filter, &info, now_us) &&
            !atomic_exchange_explicit(&e->killed, true, memory_order_relaxed)) {
            atomic_store_explicit(&registry->kills[e->worker], true, memory_order_release);
            n++;
        }
    }
    (void)pthread_mutex_unlock(&registry->lock);
    return n;
}

bool registry_kills(struct registry *registry, uint32_t worker)
{
    HK_ASSERT(worker < REGISTRY_WORKERS_MAX);
    return atomic_load_explicit(&registry->kills[worker], memory_order_relaxed) &&
           atomic_exchange_explicit(&registry->kills[worker], false, memory_order_acquire);
}

bool registry_killed(const struct registry_entry *entry)
{
    return atomic_load_explicit(&entry->killed, memory_order_relaxed);
}
