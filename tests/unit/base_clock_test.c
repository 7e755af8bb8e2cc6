#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_clocks_go_forward(void **state)
{
    (void)state;
    uint64_t boot = clock_boot_us();
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t now = clock_boot_us();
        assert_true(now >= boot);
        boot = now;
    }
    /* Milliseconds, and after 2020. */
    assert_true(clock_wall_ms() > 1577836800000u && clock_wall_ms() < 32503680000000u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clocks_go_forward)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
