#include "server/locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the node tells, kept ---- */

static bool same_lock(const struct locks_request *request, const struct node_lock *lock)
{
    uint32_t n = lock->key.n < LOCKS_KEY_MAX ? lock->key.n : LOCKS_KEY_MAX;
    return request->lock.gap == lock->gap && request->lock.infinite == lock->infinite &&
           request->key_n == lock->key.n && (n == 0 || memcmp(request->key, lock->key.at, n) == 0);
}

static bool make_room(struct locks *locks)
{
    if (locks->n < locks->capacity) {
        return true;
    }
    uint32_t capacity = locks->capacity == 0 ? 64 : locks->capacity * 2;
    struct locks_request *requests = NULL;
    if (locks->n < LOCKS_REQUESTS_MAX) {
        requests = realloc(locks->requests, capacity * sizeof *requests);
    }
    if (requests == NULL) {
        return false;
    }
    locks->requests = requests;
    locks->capacity = capacity;
    return true;
}

void locks_add(void *context, const struct node_lock *lock)
{
    struct locks *locks = context;
    if (!make_room(locks)) {
        locks->more = true;
        return;
    }
    struct locks_request *request = &locks->requests[locks->n];
    *request = (struct locks_request){.lock = *lock, .key_n = lock->key.n};
    request->lock.key = bytes_of(NULL, 0);
    uint32_t n = lock->key.n < LOCKS_KEY_MAX ? lock->key.n : LOCKS_KEY_MAX;
    if (n > 0) {
        memcpy(request->key, lock->key.at, n);
    }
    request->first = locks->n == 0 || !same_lock(request - 1, lock);
    locks->n++;
}

void locks_deinit(struct locks *locks)
{
    free(locks->requests);
    *locks = (struct locks){.n = 0};
}

/* ---- JSON ---- */

void locks_id_text(uint64_t id, char text_out[17])
{
    (void)snprintf(text_out, 17, "%016" PRIx64, id);
}

bool locks_id_parse(struct bytes text, uint64_t *id_out)
{
    uint64_t id = 0;
    for (uint32_t i = 0; i < text.n; i++) {
        static const char digits[] = "0123456789abcdef";
        uint8_t c =
            text.at[i] >= 'A' && text.at[i] <= 'F' ? (uint8_t)(text.at[i] - 'A' + 'a') : text.at[i];
        const char *digit = c != '\0' ? strchr(digits, c) : NULL;
        if (digit == NULL) {
            return false;
        }
        id = id << 4 | (uint64_t)(digit - digits);
    }
    *id_out = id;
    return text.n == 16;
}

static json_t *key_json(const struct locks_request *request)
{
    char text[4 * LOCKS_KEY_MAX + 4];
    uint32_t n = request->key_n < LOCKS_KEY_MAX ? request->key_n : LOCKS_KEY_MAX;
    size_t used = 0;
    if (request->lock.infinite) {
        return json_null();
    }
    for (uint32_t i = 0; i < n; i++) {
        uint8_t c = request->key[i];
        bool plain = c >= ' ' && c <= '~' && c != '\\';
        used += (size_t)snprintf(text + used, sizeof text - used, plain ? "%c" : "\\x%02x", c);
    }
    (void)snprintf(text + used, sizeof text - used, "%s", n < request->key_n ? "..." : "");
    return json_string(text);
}

static json_t *id_json(uint64_t id)
{
    char text[17];
    locks_id_text(id, text);
    return json_string(text);
}

static bool owns(const struct node_lock *lock)
{
    return lock->state == LOCK_OWNS || lock->state == LOCK_UPGRADES;
}

static bool waits(const struct node_lock *lock)
{
    return lock->state == LOCK_WAITS || lock->state == LOCK_UPGRADES;
}

static bool older(const struct lock_age *a, const struct lock_age *b)
{
    return a->us != b->us ? a->us < b->us : a->who < b->who;
}

/* What it has in the end: who upgrades owns S, and gets X. */
static bool exclusive(const struct node_lock *lock)
{
    return lock->mode == LOCK_X || lock->state == LOCK_UPGRADES;
}

/* Whether `other` has to go before `w` gets what it wants: it owns the lock, or is the next to. An
 * upgrade passes those that wait. */
static bool is_before(const struct node_lock *other, const struct node_lock *w)
{
    bool next = other->state == LOCK_UPGRADES || older(&other->age, &w->age);
    if (other->id == w->id) {
        return false;
    }
    if (owns(other) && (exclusive(w) || other->mode == LOCK_X)) {
        return true;
    }
    return w->state == LOCK_WAITS && waits(other) && next && (exclusive(w) || exclusive(other));
}

static json_t *waits_for(const struct locks_request *requests, uint32_t n,
                         const struct node_lock *w)
{
    json_t *j = json_array();
    for (uint32_t i = 0; i < n; i++) {
        if (is_before(&requests[i].lock, w)) {
            json_array_append_new(j, id_json(requests[i].lock.id));
        }
    }
    return j;
}

static json_t *request_json(const struct node_lock *lock, uint64_t wall_us)
{
    json_t *j = json_object();
    json_object_set_new(j, "id", id_json(lock->id));
    json_object_set_new(j, "mode", json_string(lock->mode == LOCK_X ? "exclusive" : "shared"));
    json_object_set_new(j, "state",
                        json_string(lock->try_state == TRY_WOUNDED    ? "wounded"
                                    : lock->try_state == TRY_PREPARED ? "prepared"
                                                                      : "running"));
    json_object_set_new(j, "node", json_integer(lock->coordinator));
    json_object_set_new(j, "worker", json_integer(lock->worker));
    uint64_t age_us = wall_us > lock->age.us ? wall_us - lock->age.us : 0;
    json_object_set_new(j, "age_ms", json_integer((json_int_t)(age_us / 1000)));
    return j;
}

static json_t *lock_json(const struct locks_request *requests, uint32_t n, uint64_t wall_us)
{
    json_t *owners = json_array(), *waiters = json_array(), *j = json_object();
    for (uint32_t i = 0; i < n; i++) {
        const struct node_lock *lock = &requests[i].lock;
        if (owns(lock)) {
            json_array_append_new(owners, request_json(lock, wall_us));
        }
        if (waits(lock)) {
            json_t *waiter = request_json(lock, wall_us);
            if (lock->state == LOCK_UPGRADES) {
                json_object_set_new(waiter, "mode", json_string("exclusive"));
            }
            json_object_set_new(waiter, "waits_for", waits_for(requests, n, lock));
            json_array_append_new(waiters, waiter);
        }
    }
    json_object_set_new(j, "lock", json_string(requests->lock.gap ? "gap" : "row"));
    json_object_set_new(j, "key", key_json(requests));
    json_object_set_new(j, "owners", owners);
    json_object_set_new(j, "waiters", waiters);
    return j;
}

json_t *locks_json(const struct locks *locks, uint64_t wall_us)
{
    json_t *list = json_array(), *j = json_object();
    for (uint32_t i = 0, n; i < locks->n; i += n) {
        for (n = 1; i + n < locks->n && !locks->requests[i + n].first; n++) {
        }
        json_array_append_new(list, lock_json(&locks->requests[i], n, wall_us));
    }
    json_object_set_new(j, "more", json_boolean(locks->more));
    json_object_set_new(j, "locks", list);
    return j;
}
