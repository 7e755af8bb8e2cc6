/* What a node says about its slots, read and printed. It comes from outside: it may be anything. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/slots_report.h"

static bool parse(const char *text, struct slots_report *report)
{
    /* Memory of exactly that size, without an end. */
    size_t n = strlen(text);
    char *copy = malloc(n == 0 ? 1 : n);
    assert_non_null(copy);
    memcpy(copy, text, n);
    bool parsed = slots_report_parse(bytes_of(copy, (uint32_t)n), report);
    free(copy);
    return parsed;
}

static char *print(const struct slots_report *report)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    slots_report_print(report, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void expect_print(const char *json, const char *expected)
{
    struct slots_report report;
    assert_true(parse(json, &report));
    char *text = print(&report);
    assert_string_equal(text, expected);
    free(text);
    slots_report_deinit(&report);
    slots_report_deinit(&report);
}

#define LOST                                                                                       \
    "{\"node\":1,\"spaces\":[{\"space\":2,\"engine\":\"galene\",\"map\":{\"epoch\":4,"             \
    "\"change\":2},\"slots\":{\"none\":0,\"stable\":16380,\"moving\":1,\"lost\":3,"                \
    "\"emptying\":0},\"nodes\":[{\"id\":1,\"slots\":8190,\"gives\":1,\"gets\":0},"                 \
    "{\"id\":12,\"slots\":8191,\"gives\":0,\"gets\":1}],\"runs\":["                                \
    "{\"from\":0,\"to\":8188,\"state\":\"stable\",\"home\":1},"                                    \
    "{\"from\":8189,\"to\":8189,\"state\":\"moving\",\"home\":1,\"next\":12},"                     \
    "{\"from\":8190,\"to\":8191,\"state\":\"lost\",\"home\":3},"                                   \
    "{\"from\":8192,\"to\":16382,\"state\":\"stable\",\"home\":12},"                               \
    "{\"from\":16383,\"to\":16383,\"state\":\"lost\",\"home\":3}]}]}"

static void slots_that_are_lost(void **state)
{
    (void)state;
    struct slots_report report;
    assert_true(parse(LOST, &report));
    assert_int_equal(report.node, 1);
    assert_int_equal(report.lost, 3);
    assert_int_equal(report.moving, 1);
    assert_int_equal(report.emptying, 0);
    assert_int_equal(report.none, 0);
    assert_int_equal(slots_report_lost_spaces(&report), 1u << 2);
    slots_report_deinit(&report);
    expect_print(LOST, "space 2 (galene), map 4.2\n"
                       "\n"
                       "node     slots   gives    gets\n"
                       "1         8190       1       0\n"
                       "12        8191       0       1\n"
                       "\n"
                       "moving    1 slot: 8189\n"
                       "lost      3 slots: 8190-8191, 16383\n");
}

static void all_is_well(void **state)
{
    (void)state;
    expect_print("{\"node\":1,\"spaces\":[{\"space\":2,\"engine\":\"galene\",\"map\":{\"epoch\":1,"
                 "\"change\":0},\"slots\":{\"stable\":16384},\"nodes\":[{\"id\":1,\"slots\":16384,"
                 "\"gives\":0,\"gets\":0}],\"runs\":[]}]}",
                 "space 2 (galene), map 1.0\n"
                 "\n"
                 "node     slots   gives    gets\n"
                 "1        16384       0       0\n"
                 "\n"
                 "all slots have a home\n");
    expect_print("{\"spaces\":[]}", "no space has slots: that is for engines galene and lotus\n");
}

/* Of a memory server; slots that nobody serves yet. */
static void roles_and_given_slots(void **state)
{
    (void)state;
    expect_print("{\"node\":4,\"role\":\"memory\",\"spaces\":[{\"space\":3,\"engine\":\"lotus\","
                 "\"map\":{\"epoch\":2,\"change\":5},\"slots\":{\"stable\":16383,\"given\":1},"
                 "\"nodes\":[{\"id\":4,\"slots\":16384,\"gives\":0,\"gets\":0}],\"runs\":["
                 "{\"from\":7,\"to\":7,\"state\":\"given\",\"home\":4}]}]}",
                 "node 4 has the role memory: in spaces of engine lotus it runs no transactions\n"
                 "\n"
                 "space 3 (lotus), map 2.5\n"
                 "\n"
                 "node     slots   gives    gets\n"
                 "4        16384       0       0\n"
                 "\n"
                 "given     1 slot: 7\n"
                 "all slots have a home\n");
    expect_print("{\"node\":1,\"role\":\"compute\",\"spaces\":[]}",
                 "node 1 has the role compute: in spaces of engine lotus it takes no slots\n"
                 "\n"
                 "no space has slots: that is for engines galene and lotus\n");
}

/* Every second slot is lost: a list of 8192 runs helps nobody. */
static void many_runs(void **state)
{
    (void)state;
    char *json = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&json, &n);
    assert_non_null(to);
    fprintf(to, "{\"node\":1,\"spaces\":[{\"space\":3,\"slots\":{\"lost\":20},\"runs\":[");
    for (int i = 0; i < 20; i++) {
        fprintf(to, "%s{\"from\":%d,\"to\":%d,\"state\":\"lost\"}", i > 0 ? "," : "", 2 * i, 2 * i);
    }
    fprintf(to, "]}]}");
    assert_int_equal(fclose(to), 0);
    expect_print(json, "space 3 (?), map -.-\n"
                       "\n"
                       "node     slots   gives    gets\n"
                       "\n"
                       "lost      20 slots: 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, "
                       "30 and 4 more ranges (--json has all)\n");
    free(json);
}

static void no_reports(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "{", "[]", "null", "{}", "{\"spaces\":1}", "{\"spaces\":[]} more"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct slots_report report;
        assert_false(parse(bad[i], &report));
        assert_null(report.json);
        slots_report_deinit(&report);
    }
}

/* What makes no sense inside of it is shown as not said, and never sent to the terminal. */
static void strange_reports(void **state)
{
    (void)state;
    expect_print("{\"node\":\"x\",\"spaces\":[{\"space\":-1,\"engine\":\"\\u001b[2Jgal\",\"slots\":"
                 "{\"lost\":-5,\"none\":\"a\",\"moving\":2},\"nodes\":7,\"runs\":[1,{\"state\":7},"
                 "{\"state\":\"moving\"}]},4]}",
                 "space - (?[2Jgal), map -.-\n"
                 "\n"
                 "node     slots   gives    gets\n"
                 "\n"
                 "moving    2 slots: -\n"
                 "all slots have a home\n"
                 "\n"
                 "space - (?), map -.-\n"
                 "\n"
                 "node     slots   gives    gets\n"
                 "\n"
                 "all slots have a home\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_that_are_lost), cmocka_unit_test(all_is_well),
        cmocka_unit_test(many_runs),           cmocka_unit_test(no_reports),
        cmocka_unit_test(strange_reports),     cmocka_unit_test(roles_and_given_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
