/* The table of commands: look-up, the shape of every row, what Redis says about the same commands,
 * and docs/COMPATIBILITY.md, which lists them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "resp/command.h"
#include "resp/serve_admin.h"
#include "resp/serve_data.h"
#include "support/resp_redis_commands.h"

static struct bytes text(const char *chars)
{
    return bytes_of(chars, (uint32_t)strlen(chars));
}

static void upper(const char *name, char out[64])
{
    uint32_t i = 0;
    for (; name[i] != '\0'; i++) {
        out[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
    }
    out[i] = '\0';
}

/* Any case finds it; anything that is longer, shorter or holds a NUL does not. */
static void look_up_one(const struct resp_command *command)
{
    char name[64];
    size_t n = strlen(command->name);
    upper(command->name, name);
    assert_ptr_equal(resp_command_find(text(name)), command);
    name[0] = command->name[0];
    assert_ptr_equal(resp_command_find(text(name)), command);
    assert_ptr_equal(resp_command_find(text(command->name)), command);
    assert_ptr_not_equal(resp_command_find(bytes_of(command->name, (uint32_t)n - 1)), command);
    snprintf(name, sizeof name, "%s0", command->name);
    assert_ptr_not_equal(resp_command_find(text(name)), command);
    name[n] = '\0';
    assert_null(resp_command_find(bytes_of(name, (uint32_t)n + 1)));
    name[n - 1] = '\0';
    assert_null(resp_command_find(bytes_of(name, (uint32_t)n)));
}

static void finds_each_command_and_nothing_else(void **state)
{
    (void)state;
    const char *before = "";
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        look_up_one(resp_command_at(i));
        assert_true(strcmp(before, resp_command_at(i)->name) < 0);
        before = resp_command_at(i)->name;
    }
    assert_null(resp_command_at(resp_command_count()));
    before = "";
    for (uint32_t i = 0; resp_refused_at(i) != NULL; i++) {
        look_up_one(resp_refused_at(i));
        assert_true(strcmp(before, resp_refused_at(i)->name) < 0);
        before = resp_refused_at(i)->name;
    }
    static const char *const strangers[] = {
        "",     "b",      "j",    "zzz",
        "{",    "`",      "@get", "get ",
        " get", "g\xe5t", "0",    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (uint32_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        assert_null(resp_command_find(text(strangers[i])));
    }
}

static void finds_full_names(void **state)
{
    (void)state;
    const struct resp_command *client = resp_command_find(text("client"));
    const struct resp_command *list = resp_subcommand_find(client, text("LIST"));
    assert_non_null(list);
    assert_ptr_equal(list->parent, client);
    assert_ptr_equal(resp_command_find_full(text("Client|List")), list);
    assert_ptr_equal(resp_command_find_full(text("client")), client);
    assert_null(resp_command_find_full(text("client|")));
    assert_null(resp_command_find_full(text("|list")));
    assert_null(resp_command_find_full(text("get|list")));
    assert_null(resp_command_find_full(text("client|list|list")));
    assert_null(resp_command_find_full(text("client|tracking")));
    assert_null(resp_command_find_full(text("lpush")));
    assert_null(resp_subcommand_find(resp_command_find(text("get")), text("list")));
}

static void check_keys(const struct resp_command *command)
{
    if (command->first_key == 0) {
        assert_int_equal(command->last_key, 0);
        assert_int_equal(command->key_step, 0);
        assert_int_equal(command->key_flags[0], 0);
        return;
    }
    /* Every command that fits the arity has its keys. */
    int least = command->arity < 0 ? -command->arity : command->arity;
    assert_true(command->key_step > 0);
    assert_true(command->first_key < least);
    assert_true(command->last_key == -1 ||
                (command->last_key >= command->first_key && command->last_key < least));
    assert_int_not_equal(command->key_flags[0], 0);
}

static void check_served(const struct resp_command *command)
{
    struct resp_out out;
    assert_null(command->refusal);
    assert_true(command->serve != NULL || command->subcommands != NULL);
    assert_non_null(command->summary);
    assert_true(command->summary[strlen(command->summary) - 1] == '.');
    assert_non_null(command->since);
    assert_non_null(command->group);
    assert_non_null(command->complexity);
    assert_int_not_equal(command->arity, 0);
    /* What starts operations reads or writes keys, and only that. */
    bool keys = (command->flags & (RESP_READONLY | RESP_WRITE)) != 0;
    assert_true(keys || (command->flags & RESP_DATA) == 0);
    /* Ranges have bounds instead of keys. */
    bool bounds = command->serve == serve_range || command->serve == serve_rangecount ||
                  command->serve == serve_delrange;
    assert_true((command->flags & RESP_DATA) == 0 || bounds || command->first_key > 0);
    assert_false(keys && (command->flags & (RESP_LOADING | RESP_NOAUTH)) != 0);
    check_keys(command);
    if (command->arguments == NULL) {
        return;
    }
    for (uint32_t resp3 = 0; resp3 < 2; resp3++) {
        resp_out_init(&out, 1u << 20);
        out.resp3 = resp3 == 1;
        assert_int_not_equal(resp_arguments_write(command->arguments, &out), 0);
        assert_false(out.failed);
        resp_out_deinit(&out);
    }
}

static void check_refused(const struct resp_command *command)
{
    char begin[80];
    bool by_text = (command->flags & RESP_REFUSED) != 0;
    assert_int_equal(by_text, command->refusal != NULL);
    assert_non_null(command->serve);
    assert_int_equal(by_text, command->serve == serve_refused);
    assert_non_null(command->group);
    assert_null(command->summary);
    if (by_text) {
        snprintf(begin, sizeof begin, "'%s%s%s' is not supported: ",
                 command->parent != NULL ? command->parent->name : "",
                 command->parent != NULL ? "|" : "", command->name);
        assert_memory_equal(command->refusal, begin, strlen(begin));
        assert_true(strlen(command->refusal) > strlen(begin));
    }
}

static void rows_are_whole(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        const struct resp_command *command = resp_command_at(i);
        const char *before = "";
        bool help = false;
        assert_null(command->parent);
        check_served(command);
        for (uint32_t j = 0; j < command->subcommands_n; j++) {
            const struct resp_command *sub = &command->subcommands[j];
            assert_ptr_equal(sub->parent, command);
            assert_null(sub->subcommands);
            assert_true(strcmp(before, sub->name) < 0);
            before = sub->name;
            help = help || strcmp(sub->name, "help") == 0;
            if ((sub->flags & RESP_REFUSED) != 0) {
                check_refused(sub);
            } else {
                check_served(sub);
            }
        }
        assert_int_equal(help, command->subcommands != NULL);
    }
    for (uint32_t i = 0; resp_refused_at(i) != NULL; i++) {
        check_refused(resp_refused_at(i));
        assert_int_equal(resp_refused_at(i)->first_key, 0);
    }
}

/* ---- Redis ---- */

static int by_word(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void join(const char **words, uint32_t n, bool sorted, char *out, size_t capacity)
{
    size_t at = 0;
    if (sorted) {
        qsort(words, n, sizeof words[0], by_word);
    }
    out[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(out + at, capacity - at, "%s%s", i > 0 ? " " : "", words[i]);
    }
}

static void flags_text(const struct resp_command *command, char out[128])
{
    const char *words[RESP_WORDS_MAX];
    const char *kept[RESP_WORDS_MAX];
    uint32_t n = 0;
    uint32_t all = resp_command_flag_words(command, words);
    for (uint32_t i = 0; i < all; i++) {
        if (strcmp(words[i], "stale") != 0) {
            kept[n++] = words[i];
        }
    }
    join(kept, n, true, out, 128);
}

static void key_flags_text(const struct resp_command *command, char out[128])
{
    const char *words[RESP_WORDS_MAX];
    out[0] = '\0';
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t n = resp_key_flag_words(command->key_flags[i], words);
        size_t at = strlen(out);
        if (n > 0) {
            snprintf(out + at, 128 - at, "%s", i > 0 ? ";" : "");
            at = strlen(out);
            join(words, n, true, out + at, 128 - at);
        }
    }
}

/* Where the table is different on purpose. */
static bool deliberate(const char *name)
{
    static const char *const names[] = {
        "command|getkeys",         /* takes commands of one word, as Redis does since 7.2 */
        "command|getkeysandflags", /* likewise */
        "debug",                   /* a container here, so it has a container's flags */
        "memory|doctor",           /* figures of memory are answered while the node is joining */
        "memory|malloc-stats",     /* likewise */
        "memory|purge",            /* likewise */
        "memory|stats",            /* likewise */
        "role",                    /* tells no secrets here: every node is the same */
    };
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void agrees_with_redis(void **state)
{
    (void)state;
    uint32_t known = 0, wrong = 0;
    for (uint32_t i = 0; i < sizeof redis_commands / sizeof redis_commands[0]; i++) {
        const struct redis_command *redis = &redis_commands[i];
        const struct resp_command *command = resp_command_find_full(text(redis->name));
        const char *words[RESP_WORDS_MAX];
        char flags[128], categories[128], key_flags[128];
        if (command == NULL || deliberate(redis->name)) {
            continue; /* refused */
        }
        known++;
        flags_text(command, flags);
        key_flags_text(command, key_flags);
        join(words, resp_command_category_words(command, words), false, categories,
             sizeof categories);
        if (command->arity != redis->arity || command->first_key != redis->first_key ||
            command->last_key != redis->last_key || command->key_step != redis->key_step ||
            strcmp(flags, redis->flags) != 0 || strcmp(categories, redis->categories) != 0 ||
            strcmp(key_flags, redis->key_flags) != 0) {
            print_message("%s: here %d %d %d %d \"%s\" \"%s\" \"%s\"\n%s: Redis %d %d %d %d \"%s\" "
                          "\"%s\" \"%s\"\n",
                          redis->name, command->arity, command->first_key, command->last_key,
                          command->key_step, flags, categories, key_flags, redis->name,
                          redis->arity, redis->first_key, redis->last_key, redis->key_step,
                          redis->flags, redis->categories, redis->key_flags);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    assert_true(known > 100);
}

/* ---- Arguments ---- */

static const char *written(const char *syntax, char out_text[2048])
{
    struct resp_out out;
    resp_out_init(&out, 2048);
    out.resp3 = true;
    if (resp_arguments_write(syntax, &out) == 0) {
        assert_int_equal(out.n, 0);
        return NULL;
    }
    assert_false(out.failed);
    /* The lengths of strings only make it harder to read. */
    uint32_t n = 0;
    for (uint32_t i = 0; i < out.n; i++) {
        if (out.at[i] == '$') {
            while (out.at[i] != '\n') {
                i++;
            }
        } else if (out.at[i] != '\r') {
            out_text[n++] = out.at[i] == '\n' ? ' ' : (char)out.at[i];
        }
    }
    out_text[n] = '\0';
    resp_out_deinit(&out);
    return out_text;
}

static void writes_arguments(void **state)
{
    (void)state;
    char got[2048];
    assert_string_equal(written("key", got), "*1 %3 name key type key key_spec_index :0 ");
    assert_string_equal(written("message...", got),
                        "*1 %3 name message type string flags ~1 +multiple ");
    assert_string_equal(written("[section...]", got),
                        "*1 %3 name section type string flags ~2 +optional +multiple ");
    assert_string_equal(written("key newkey", got), "*2 %3 name key type key key_spec_index :0 "
                                                    "%3 name newkey type key key_spec_index :1 ");
    assert_string_equal(written("[EX seconds | KEEPTTL]", got),
                        "*1 %4 name seconds type oneof flags ~1 +optional arguments *2 "
                        "%3 name seconds type integer token EX "
                        "%3 name keepttl type pure-token token KEEPTTL ");
    assert_string_equal(written("(key value)...", got),
                        "*1 %4 name key type block flags ~1 +multiple arguments *2 "
                        "%3 name key type key key_spec_index :0 %2 name value type string ");
    assert_string_equal(written("[BY (NAME a | ID b)]", got),
                        "*1 %5 name a type oneof token BY flags ~1 +optional arguments *2 "
                        "%3 name a type string token NAME %3 name b type string token ID ");
    assert_string_equal(written("(ON | OFF)", got), "*1 %3 name on type oneof arguments *2 "
                                                    "%3 name on type pure-token token ON "
                                                    "%3 name off type pure-token token OFF ");
    assert_string_equal(written("[GET] a", got),
                        "*2 %4 name get type pure-token token GET flags ~1 +optional "
                        "%2 name a type string ");
}

static void refuses_other_languages(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    " ",   "[a", "a]",  "(a",    "a)",  "[]",
                                        "a |", "| a", "()", "[a)", "a | b", "...", "[a | ]"};
    char many[400] = "";
    char got[2048];
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_null(written(wrong[i], got));
    }
    for (uint32_t i = 0; i < 70; i++) {
        strcat(many, "a ");
    }
    assert_null(written(many, got));
}

/* ---- The document ---- */

struct page {
    char *text;
    size_t n;
};

static struct page read_page(void)
{
    struct page page = {NULL, 0};
    FILE *file = fopen("docs/COMPATIBILITY.md", "r");
    assert_non_null(file);
    page.text = malloc(1u << 20);
    assert_non_null(page.text);
    page.n = fread(page.text, 1, (1u << 20) - 1, file);
    page.text[page.n] = '\0';
    fclose(file);
    return page;
}

static void add(struct page *page, const char *words)
{
    size_t n = strlen(words);
    assert_true(page->n + n < 1u << 20);
    memcpy(page->text + page->n, words, n + 1);
    page->n += n;
}

/* A bar would end the cell. */
static void add_syntax(struct page *page, const char *syntax)
{
    for (; *syntax != '\0'; syntax++) {
        char c[2] = {*syntax, '\0'};
        add(page, *syntax == '|' ? "\\|" : c);
    }
}

static void add_row(struct page *page, const struct resp_command *command)
{
    char name[64];
    add(page, "| `");
    if (command->parent != NULL) {
        upper(command->parent->name, name);
        add(page, name);
        add(page, " ");
    }
    upper(command->name, name);
    add(page, name);
    if (command->arguments != NULL) {
        add(page, " ");
        add_syntax(page, command->arguments);
    }
    add(page, "` | ");
    add(page, command->summary);
    add(page, " |\n");
}

static void expect_block(const struct page *page, const char *begin, const char *end,
                         const struct page *expected)
{
    const char *from = strstr(page->text, begin);
    assert_non_null(from);
    from += strlen(begin);
    const char *to = strstr(from, end);
    assert_non_null(to);
    if ((size_t)(to - from) != expected->n || memcmp(from, expected->text, expected->n) != 0) {
        /* Whole, so that it can be pasted; print_message would cut it. */
        fprintf(stderr, "docs/COMPATIBILITY.md must have between %s and %s:\n%s", begin, end,
                expected->text);
        fail();
    }
}

static void document_lists_what_is_served(void **state)
{
    (void)state;
    struct page page = read_page();
    struct page expected = {malloc(1u << 20), 0};
    assert_non_null(expected.text);
    add(&expected, "\n| command | does |\n|---|---|\n");
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        const struct resp_command *command = resp_command_at(i);
        if (command->serve != NULL) {
            add_row(&expected, command);
        }
        for (uint32_t j = 0; j < command->subcommands_n; j++) {
            const struct resp_command *sub = &command->subcommands[j];
            if ((sub->flags & RESP_REFUSED) == 0 && strcmp(sub->name, "help") != 0) {
                add_row(&expected, sub);
            }
        }
    }
    expect_block(&page, "<!-- served -->", "<!-- end of served -->", &expected);
    free(page.text);
    free(expected.text);
}

static const char *reason(const struct resp_command *command)
{
    if (command->refusal != NULL) {
        return strstr(command->refusal, ": ") + 2;
    }
    return "in Redis's words, cluster support is disabled";
}

static void add_names(struct page *expected, const struct resp_command *command)
{
    char name[64];
    add(expected, "`");
    if (command->parent != NULL) {
        upper(command->parent->name, name);
        add(expected, name);
        add(expected, " ");
    }
    upper(command->name, name);
    add(expected, name);
    add(expected, "`");
}

/* All that are refused, subcommands too; returns NULL past the end. */
static const struct resp_command *refused_at(uint32_t index)
{
    uint32_t n = 0;
    for (; resp_refused_at(n) != NULL; n++) {
        if (n == index) {
            return resp_refused_at(n);
        }
    }
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        for (uint32_t j = 0; j < resp_command_at(i)->subcommands_n; j++) {
            const struct resp_command *sub = &resp_command_at(i)->subcommands[j];
            if ((sub->flags & RESP_REFUSED) != 0 && n++ == index) {
                return sub;
            }
        }
    }
    return NULL;
}

/* One line a reason, in the order in which they first appear. */
static void document_lists_what_is_refused(void **state)
{
    (void)state;
    struct page page = read_page();
    struct page expected = {malloc(1u << 20), 0};
    const struct resp_command *command, *other;
    assert_non_null(expected.text);
    add(&expected, "\n| reason | commands |\n|---|---|\n");
    for (uint32_t i = 0; (command = refused_at(i)) != NULL; i++) {
        bool first = true;
        for (uint32_t j = 0; j < i && first; j++) {
            first = strcmp(reason(refused_at(j)), reason(command)) != 0;
        }
        if (!first) {
            continue;
        }
        add(&expected, "| ");
        add(&expected, reason(command));
        add(&expected, " | ");
        add_names(&expected, command);
        for (uint32_t j = i + 1; (other = refused_at(j)) != NULL; j++) {
            if (strcmp(reason(other), reason(command)) == 0) {
                add(&expected, " ");
                add_names(&expected, other);
            }
        }
        add(&expected, " |\n");
    }
    expect_block(&page, "<!-- refused -->", "<!-- end of refused -->", &expected);
    free(page.text);
    free(expected.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_each_command_and_nothing_else),
        cmocka_unit_test(finds_full_names),
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(agrees_with_redis),
        cmocka_unit_test(writes_arguments),
        cmocka_unit_test(refuses_other_languages),
        cmocka_unit_test(document_lists_what_is_served),
        cmocka_unit_test(document_lists_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
