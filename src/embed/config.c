/* The program's struct becomes the text of a configuration file: so there is one set of names,
 * defaults, bounds and messages. */
#include "embed/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX (16u * 1024u)

struct text {
    char at[TEXT_MAX];
    size_t n;
    bool bad; /* a word that would be more than a word, or no room */
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at + t->n, sizeof t->at - t->n, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof t->at - t->n) {
        t->bad = true;
    } else {
        t->n += (size_t)n;
    }
}

/* Whether a string stays one value when it stands in a line of its own. */
static bool is_line(const char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s < 0x20) {
            return false;
        }
    }
    return true;
}

static void add_word(struct text *t, const char *name, const char *value)
{
    if (value != NULL) {
        t->bad |= !is_line(value);
        add(t, "%s = %s\n", name, value);
    }
}

static void add_number(struct text *t, const char *name, uint64_t value)
{
    if (value != 0) {
        add(t, "%s = %" PRIu64 "\n", name, value);
    }
}

static void write_text(const struct hk_config *c, struct text *t)
{
    const char *dir = c->dir != NULL ? c->dir : ".";
    add(t, "[node]\nid = %" PRIu32 "\n", c->id);
    t->bad |= !is_line(dir);
    add(t, "state_file = %s/horkos-%" PRIu32 ".state\n", dir, c->id);
    add_word(t, "log_file", c->log_file);
    add_word(t, "log_level", c->log_file == NULL ? "warn" : NULL);
    add_number(t, "workers", c->workers);
    add_number(t, "leave_ms", c->leave_ms);
    add_number(t, "spin_us", c->spin_us);
    add(t, "[cluster]\n");
    add_word(t, "name", c->cluster);
    add_number(t, "lease_ms", c->lease_ms);
    if (c->peers_n > 0) {
        add(t, "[peers]\n");
    }
    for (size_t i = 0; i < c->peers_n; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%" PRIu32, c->peers[i].id);
        add_word(t, id, c->peers[i].address != NULL ? c->peers[i].address : "");
    }
    /* Without clients the address is not used; this one is nobody else's. */
    add(t, "[clients]\n");
    add_word(t, "listen", c->clients ? c->listen : "unix:/none");
    add(t, "[space 0]\n");
    add_number(t, "memory_max", c->memory_max);
    add_number(t, "keys_expected", c->keys_expected);
    if (c->transactions) {
        add(t, "[space %u]\nengine = zeus\n", HK_SPACE_TRANSACTIONS);
        add_number(t, "memory_max", c->memory_max);
        add_number(t, "keys_expected", c->keys_expected);
    }
    if (c->ordered) {
        add(t, "[space %u]\nengine = lotus\n", HK_SPACE_ORDERED);
        add_number(t, "memory_max", c->memory_max);
        add_number(t, "keys_expected", c->keys_expected);
    }
}

static int from_fields(const struct hk_config *c, struct config *config_out, char *error_out,
                       uint32_t size)
{
    struct text t = {.n = 0};
    if (c->peers_n > HK_NODES_MAX || (c->peers_n > 0 && c->peers == NULL)) {
        (void)snprintf(error_out, size, "peers: give 0 to %u of them", HK_NODES_MAX);
        return HK_ERR_INVALID;
    }
    write_text(c, &t);
    if (t.bad) {
        (void)snprintf(error_out, size,
                       "a name, an address or a path is too long, or holds control characters");
        return HK_ERR_INVALID;
    }
    return config_parse(bytes_of(t.at, (uint32_t)t.n), c->key, config_out, error_out, size);
}

int embed_config(const struct hk_config *from, struct config *config_out, char *error_out,
                 uint32_t size)
{
    int err;
    if (from->file != NULL && from->text != NULL) {
        (void)snprintf(error_out, size, "give file or text, not both");
        return HK_ERR_INVALID;
    }
    if (from->file != NULL) {
        err = config_read_keyed(from->file, from->key, config_out, error_out, size);
    } else if (from->text != NULL) {
        size_t n = strlen(from->text);
        struct bytes text = bytes_of(from->text, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX);
        err = config_parse(text, from->key, config_out, error_out, size);
    } else {
        err = from_fields(from, config_out, error_out, size);
    }
    if (err != HK_OK) {
        return err;
    }
    if (!from->clients) {
        config_out->listens_n = 0;
        config_out->clients_max = 1;
    } else if (from->listen != NULL && (from->file != NULL || from->text != NULL)) {
        (void)snprintf(error_out, size, "listen: the configuration says where clients are taken");
        return HK_ERR_INVALID;
    }
    return HK_OK;
}
