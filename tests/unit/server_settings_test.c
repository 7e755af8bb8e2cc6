/* What CONFIG SET changes reaches the workers: every option of the table that may change while the
 * node runs is in the settings that they take over, or is read from the live configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "server/internal.h"

static void set(struct config *config, const char *name, const char *value)
{
    assert_null(config_set(config, bytes_of(name, (uint32_t)strlen(name)),
                           bytes_of(value, (uint32_t)strlen(value))));
}

static void workers_see_what_was_set(void **state)
{
    (void)state;
    static const char text[] = "[node]\nid = 0\n";
    char error[CONFIG_ERROR_MAX];
    struct settings settings;
    struct server *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_int_equal(pthread_rwlock_init(&s->config_lock, NULL), 0);
    assert_int_equal(
        config_parse(bytes_of(text, sizeof text - 1), NULL, &s->config, error, sizeof error),
        HK_OK);
    s->live = s->config;
    set(&s->live, "node.spin_us", "7");
    set(&s->live, "node.leave_ms", "8");
    set(&s->live, "timeout", "9");
    set(&s->live, "maxmemory-clients", "2mb");
    set(&s->live, "slowlog-log-slower-than", "11");
    set(&s->live, "proto-max-bulk-len", "12kb");
    server_settings_read(s, &settings);
    assert_int_equal(settings.spin_us, 7);
    assert_int_equal(settings.leave_ms, 8);
    assert_int_equal(settings.timeout_s, 9);
    assert_int_equal(settings.clients_memory_max, 2u << 20);
    assert_int_equal(settings.slowlog_us, 11);
    assert_int_equal(settings.limits.bulk_bytes_max, 12u << 10);
    assert_int_equal(pthread_rwlock_destroy(&s->config_lock), 0);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_see_what_was_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
