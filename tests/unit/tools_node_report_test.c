/* What a node says about itself, read and printed. It comes from outside: it may be anything. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/node_report.h"

static bool parse(const char *text, struct node_report *report)
{
    /* Memory of exactly that size, without an end. */
    size_t n = strlen(text);
    char *copy = malloc(n == 0 ? 1 : n);
    assert_non_null(copy);
    memcpy(copy, text, n);
    bool parsed = node_report_parse(bytes_of(copy, (uint32_t)n), report);
    free(copy);
    return parsed;
}

static char *print(const struct node_report *report)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    node_report_print(report, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void a_whole_report(void **state)
{
    (void)state;
    struct node_report report;
    assert_true(parse("{\"node\":2,\"status\":\"serving\",\"role\":\"operational\",\"epoch\":7,"
                      "\"lease_ms_left\":431,\"can_serve\":true,\"members\":["
                      "{\"id\":1,\"role\":\"none\",\"live\":false,\"address\":\"h:1\"},"
                      "{\"id\":2,\"role\":\"operational\",\"live\":true,\"address\":\"h:2\"}],"
                      "\"spaces\":[{\"space\":0,\"engine\":\"hermes\",\"keys\":12,"
                      "\"bytes\":3456}],\"more\":[1,2]}",
                      &report));
    assert_true(report.can_serve);
    assert_int_equal(report.node, 2);
    assert_string_equal(report.role, "operational");
    assert_string_equal(report.status, "serving");
    char *text = print(&report);
    assert_string_equal(text, "node   2: operational (serving), serves\n"
                              "epoch  7\n"
                              "lease  431 ms left\n"
                              "\n"
                              "member  role         live  address\n"
                              "1       none         no    h:1\n"
                              "2       operational  yes   h:2\n"
                              "\n"
                              "space  engine            keys            bytes\n"
                              "0      hermes              12             3456\n");
    free(text);
    node_report_deinit(&report);
    node_report_deinit(&report);
}

static void a_space_with_homes(void **state)
{
    (void)state;
    struct node_report report;
    assert_true(parse("{\"node\":2,\"can_serve\":true,\"members\":[],\"spaces\":["
                      "{\"space\":0,\"engine\":\"hermes\",\"keys\":1,\"bytes\":2},"
                      "{\"space\":2,\"engine\":\"galene\",\"keys\":3,\"bytes\":4,\"homed\":5461,"
                      "\"slots\":{\"none\":0,\"stable\":16300,\"moving\":80,\"lost\":4,"
                      "\"emptying\":0}}],\"galene\":{\"hits\":648,\"at_home\":2,\"misses\":350,"
                      "\"hit_rate\":0.648}}",
                      &report));
    char *text = print(&report);
    assert_string_equal(strstr(text, "space  engine"),
                        "space  engine            keys            bytes\n"
                        "0      hermes               1                2\n"
                        "2      galene               3                4\n"
                        "\n"
                        "space 2: home of 5461 slots; of all slots moving 80, lost 4\n"
                        "hit rate 64.8 %: 648 hits, 2 at home, 350 misses\n");
    free(text);
    node_report_deinit(&report);
}

static void a_space_with_tables(void **state)
{
    (void)state;
    struct node_report report;
    assert_true(parse("{\"node\":2,\"can_serve\":true,\"members\":[],\"spaces\":["
                      "{\"space\":3,\"engine\":\"lotus\",\"keys\":3,\"bytes\":4}],"
                      "\"lotus\":{\"transactions\":5,\"tries\":7,\"requests\":12,"
                      "\"home_waits\":3,\"home_refused\":2,\"home_doubts\":0}}",
                      &report));
    char *text = print(&report);
    assert_string_equal(strstr(text, "lotus  5"),
                        "lotus  5 transactions in 7 tries, 12 messages to memory servers; here 3 "
                        "waits for locks, 2 refused, 0 in doubt\n");
    free(text);
    node_report_deinit(&report);
}

static void no_reports(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "1",
        "{}",
        "{\"can_serve\":1}",
        "{\"can_serve\":\"true\"}",
        "{\"can_serve\":true} more",
        "{\"can_serve\":true",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct node_report report;
        if (parse(bad[i], &report) || report.json != NULL || report.can_serve) {
            fail_msg("taken: %s", bad[i]);
        }
    }
}

/* What is missing or of another type shows as a gap, and nothing that came from outside reaches the
 * terminal but printable ASCII. */
static void odd_reports(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "{\"can_serve\":false}",
        "{\"can_serve\":false,\"node\":\"x\",\"role\":3,\"members\":7,\"spaces\":{\"a\":1}}",
        "{\"can_serve\":false,\"members\":[1,null,[],{}],\"spaces\":[1,null,[],{}]}",
        "{\"can_serve\":false,\"role\":\"\\u001b[2Jx\\r\\n\",\"members\":[{\"id\":-5}]}",
        "{\"can_serve\":false,\"members\":[{\"address\":\"\\u009b\\u00e9\\u007f\"}]}",
    };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct node_report report;
        assert_true(parse(odd[i], &report));
        assert_false(report.can_serve);
        assert_int_equal(report.node, -1);
        char *text = print(&report);
        for (const char *c = text; *c != '\0'; c++) {
            assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
        }
        assert_non_null(strstr(text, "does not serve"));
        free(text);
        node_report_deinit(&report);
    }
}

static void errors_of_a_node(void **state)
{
    (void)state;
    char text[8];
    node_error_text(bytes_of("ERR \x1b[2J and more", 17), text, sizeof text);
    assert_string_equal(text, "ERR ?[2");
    node_error_text(bytes_of(NULL, 0), text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_report),      cmocka_unit_test(a_space_with_homes),
        cmocka_unit_test(a_space_with_tables), cmocka_unit_test(no_reports),
        cmocka_unit_test(odd_reports),         cmocka_unit_test(errors_of_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
