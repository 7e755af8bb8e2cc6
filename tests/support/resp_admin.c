#include "resp_admin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "resp/glob.h"

static struct bytes text(const char *chars)
{
    return bytes_of(chars, (uint32_t)strlen(chars));
}

static bool host_info(void *context, const char *section, struct resp_out *out)
{
    static const struct {
        const char *name, *lines;
    } sections[] = {
        {"server", "# Server\r\nredis_version:" RESP_REDIS_VERSION "\r\nredis_mode:standalone\r\n"},
        {"clients", "# Clients\r\nconnected_clients:1\r\n"},
        {"memory", "# Memory\r\nused_memory:1000\r\nused_memory_human:1000B\r\nmaxmemory:0\r\n"},
        {"persistence", "# Persistence\r\nloading:0\r\n"},
        {"stats", "# Stats\r\ntotal_commands_processed:3\r\n"},
        {"commandstats", "# Commandstats\r\n"},
        {"keyspace", "# Keyspace\r\ndb0:keys=0\r\n"},
    };
    (void)context;
    for (uint32_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (strcmp(section, sections[i].name) == 0) {
            resp_out_raw(out, text(sections[i].lines));
            return true;
        }
    }
    return false;
}

static const char *const *host_info_sections(void *context, bool all)
{
    static const char *const every[] = {"server", "clients",      "memory",   "persistence",
                                        "stats",  "commandstats", "keyspace", NULL};
    static const char *const usual[] = {"server", "clients",  "memory", "persistence",
                                        "stats",  "keyspace", NULL};
    (void)context;
    return all ? every : usual;
}

static uint32_t host_config_get(void *context, struct bytes pattern, resp_emit_fn *emit,
                                void *emit_to)
{
    struct admin *admin = context;
    const char *const options[][2] = {{"appendonly", "no"},
                                      {"databases", "4"},
                                      {"maxmemory", admin->maxmemory},
                                      {"save", ""},
                                      {"slowlog-log-slower-than", admin->slower_than}};
    uint32_t n = 0;
    for (uint32_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (resp_glob_match(pattern, text(options[i][0]), true)) {
            emit(emit_to, text(options[i][0]), text(options[i][1]));
            n++;
        }
    }
    return n;
}

static const char *host_config_set(void *context, uint32_t n, const struct bytes *names,
                                   const struct bytes *values)
{
    struct admin *admin = context;
    for (uint32_t i = 0; i < n; i++) {
        if (!bytes_equal(names[i], text("maxmemory"))) {
            return "Unknown option";
        }
        if (values[i].n >= ADMIN_OPTION_MAX) {
            return "CONFIG SET failed";
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        memcpy(admin->maxmemory, values[i].at, values[i].n);
        admin->maxmemory[values[i].n] = '\0';
    }
    admin->config_sets += n;
    return NULL;
}

static const char *host_config_rewrite(void *context)
{
    struct admin *admin = context;
    return admin->rewrites++ == 0 ? NULL : "The server is running without a config file";
}

static void host_reset_stats(void *context)
{
    ((struct admin *)context)->stat_resets++;
}

static void host_client_list(void *context, const struct resp_client_filter *filter,
                             struct resp_out *out)
{
    struct admin *admin = context;
    struct resp_conn_info info;
    resp_conn_info(admin->rig.conn, &info);
    if (resp_client_matches(filter, &info, admin->rig.now_us)) {
        resp_client_line(&info, admin->rig.now_us, out);
    }
    if (admin->other.id != 0 && resp_client_matches(filter, &admin->other, admin->rig.now_us)) {
        resp_client_line(&admin->other, admin->rig.now_us, out);
    }
}

static uint32_t host_client_kill(void *context, const struct resp_client_filter *filter)
{
    struct admin *admin = context;
    struct resp_conn_info info;
    admin->kill_skip = filter->skip;
    resp_conn_info(admin->rig.conn, &info);
    assert_false(resp_client_matches(filter, &info, admin->rig.now_us));
    if (admin->other.id == 0 || !resp_client_matches(filter, &admin->other, admin->rig.now_us)) {
        return 0;
    }
    admin->kills++;
    return 1;
}

static void host_slow_add(void *context, const struct resp_slow *slow)
{
    struct admin *admin = context;
    if (admin->slow_n == ADMIN_SLOW_MAX) {
        memmove(&admin->slow[0], &admin->slow[1], (ADMIN_SLOW_MAX - 1) * sizeof admin->slow[0]);
        admin->slow_n--;
    }
    struct admin_slow *kept = &admin->slow[admin->slow_n++];
    uint32_t used = 0;
    kept->slow = *slow;
    kept->slow.id = admin->slow_id++;
    assert_true(slow->args_n <= RESP_SLOW_ARGUMENTS);
    for (uint32_t i = 0; i < slow->args_n; i++) {
        assert_true(slow->args[i].n <= RESP_SLOW_WORD_MAX);
        if (slow->args[i].n > 0) {
            memcpy(kept->bytes + used, slow->args[i].at, slow->args[i].n);
        }
        kept->args[i] = bytes_of(kept->bytes + used, slow->args[i].n);
        used += slow->args[i].n;
    }
    kept->slow.address = "127.0.0.1:50000";
    kept->slow.name = "";
}

static int64_t host_slow_threshold_us(void *context)
{
    return ((struct admin *)context)->slow_threshold_us;
}

static void host_slow_get(void *context, int64_t n, struct resp_out *out)
{
    struct admin *admin = context;
    uint32_t written = n < 0 || n > admin->slow_n ? admin->slow_n : (uint32_t)n;
    resp_out_array(out, written);
    for (uint32_t i = 0; i < written; i++) {
        /* The entries move in the array, so their arguments are pointed to anew. */
        struct admin_slow *kept = &admin->slow[admin->slow_n - 1 - i];
        uint32_t used = 0;
        for (uint32_t j = 0; j < kept->slow.args_n; j++) {
            kept->args[j].at = kept->bytes + used;
            used += kept->args[j].n;
        }
        kept->slow.args = kept->args;
        resp_slow_write(&kept->slow, out);
    }
}

static uint64_t host_slow_length(void *context)
{
    return ((struct admin *)context)->slow_n;
}

static void host_slow_reset(void *context)
{
    ((struct admin *)context)->slow_n = 0;
}

/* As many keys as are asked for, "hot:0" the hottest, a tenth slower each; of space 1 none. */
static int host_hotkeys(void *context, uint32_t space, uint32_t count, resp_hotkey_fn *emit,
                        void *emit_to)
{
    struct admin *admin = context;
    admin->hotkeys_count = count;
    uint64_t rate = UINT64_MAX;
    for (uint32_t i = 0; i < count && space != 1 && admin->hotkeys_error == HK_OK; i++) {
        char key[16];
        snprintf(key, sizeof key, "hot:%u", i);
        emit(emit_to, text(key), rate);
        rate = i == 0 ? 1000 : rate / 10;
    }
    return admin->hotkeys_error;
}

static const char *host_shutdown(void *context, bool now)
{
    struct admin *admin = context;
    admin->shutdowns++;
    admin->shutdown_now = now;
    return admin->shutdown_error;
}

static bool host_horkos(void *context, uint32_t space, uint32_t n, const struct bytes *args,
                        struct resp_out *out)
{
    (void)context;
    (void)space;
    if (n != 2 || !bytes_equal(args[0], text("echo"))) {
        return false;
    }
    resp_out_bulk(out, args[1]);
    return true;
}

static void host_changed(void *context, const struct resp_conn *conn)
{
    (void)conn;
    ((struct admin *)context)->changes++;
}

void admin_init(struct admin *admin, const char *password)
{
    memset(admin, 0, sizeof *admin);
    rig_init(&admin->rig);
    struct resp_host *host = &admin->rig.host;
    host->info = host_info;
    host->info_sections = host_info_sections;
    host->config_get = host_config_get;
    host->config_set = host_config_set;
    host->config_rewrite = host_config_rewrite;
    host->reset_stats = host_reset_stats;
    host->client_list = host_client_list;
    host->client_kill = host_client_kill;
    host->slow_add = host_slow_add;
    host->slow_threshold_us = host_slow_threshold_us;
    host->slow_get = host_slow_get;
    host->slow_length = host_slow_length;
    host->slow_reset = host_slow_reset;
    host->hotkeys = host_hotkeys;
    host->shutdown = host_shutdown;
    host->horkos = host_horkos;
    host->changed = host_changed;
    admin->slow_threshold_us = -1;
    snprintf(admin->maxmemory, sizeof admin->maxmemory, "0");
    snprintf(admin->slower_than, sizeof admin->slower_than, "10000");
    admin->rig.password = password;
    rig_reconnect(&admin->rig);
}

void admin_deinit(struct admin *admin)
{
    rig_deinit(&admin->rig);
}
