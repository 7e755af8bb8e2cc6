/* The command lines of server, dev, status, recover and slots: what they take and what they
 * refuse. The messages go to standard error, which is a file here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "node/node.h"
#include "tools/ask_options.h"
#include "tools/commands.h"
#include "tools/dev_options.h"
#include "tools/options.h"
#include "tools/server_options.h"

#define ARGS_MAX 80

/* What a parser printed on standard error, as text. */
struct caught {
    char text[2048];
    int saved;
    FILE *file;
};

static void catch_begin(struct caught *caught)
{
    fflush(stderr);
    caught->file = tmpfile();
    assert_non_null(caught->file);
    caught->saved = dup(STDERR_FILENO);
    assert_true(caught->saved >= 0);
    assert_true(dup2(fileno(caught->file), STDERR_FILENO) >= 0);
}

static void catch_end(struct caught *caught)
{
    fflush(stderr);
    assert_true(dup2(caught->saved, STDERR_FILENO) >= 0);
    close(caught->saved);
    rewind(caught->file);
    size_t n = fread(caught->text, 1, sizeof caught->text - 1, caught->file);
    caught->text[n] = '\0';
    fclose(caught->file);
}

/* Cuts a line into words at blanks; "~" stands for a blank inside a word. */
struct line {
    char text[2048];
    char *argv[ARGS_MAX];
    int argc;
};

static void cut(struct line *line, const char *text)
{
    snprintf(line->text, sizeof line->text, "%s", text);
    line->argc = 0;
    for (char *word = strtok(line->text, " "); word != NULL; word = strtok(NULL, " ")) {
        for (char *c = word; *c != '\0'; c++) {
            *c = *c == '~' ? ' ' : *c;
        }
        assert_true(line->argc < ARGS_MAX - 1);
        line->argv[line->argc++] = word;
    }
    line->argv[line->argc] = NULL;
}

static int parse_dev(struct line *line, const char *text, struct dev_options *options)
{
    bool help = false;
    cut(line, text);
    int status = dev_options_parse(line->argc, line->argv, options, &help);
    assert_false(help);
    return status;
}

static void dev_defaults(void **state)
{
    (void)state;
    struct line line;
    struct dev_options o;
    setenv("XDG_STATE_HOME", "/x/state", 1);
    assert_int_equal(parse_dev(&line, "dev", &o), STATUS_OK);
    assert_int_equal(o.action, DEV_RUN);
    assert_int_equal(o.nodes, 3);
    assert_int_equal(o.base_port, 7001);
    assert_string_equal(o.dir, "/x/state/horkos-dev");
    assert_false(o.detach);
    assert_int_equal(o.lease_ms, 0);
    assert_int_equal(o.sets_n, 0);
    assert_int_equal(o.wait_s, 15);
}

static void dev_takes_all_options(void **state)
{
    (void)state;
    struct line line;
    struct dev_options o;
    assert_int_equal(parse_dev(&line,
                               "dev --nodes 5 --base-port 0 --dir /d --lease 150 --detach --wait 7 "
                               "--set space~0.memory_max=1gb --set user~a.b.password=x=y.z",
                               &o),
                     STATUS_OK);
    assert_int_equal(o.nodes, 5);
    assert_int_equal(o.base_port, 0);
    assert_string_equal(o.dir, "/d");
    assert_int_equal(o.lease_ms, 150);
    assert_true(o.detach);
    assert_int_equal(o.wait_s, 7);
    assert_int_equal(o.sets_n, 2);
    assert_memory_equal(o.sets[0].section, "space 0.memory_max=1gb", 7);
    assert_int_equal(o.sets[0].section_n, 7);
    assert_int_equal(o.sets[0].option_n, 10);
    assert_string_equal(o.sets[0].value, "1gb");
    assert_int_equal(o.sets[1].section_n, 8);
    assert_memory_equal(o.sets[1].option, "password", 8);
    assert_string_equal(o.sets[1].value, "x=y.z");

    assert_int_equal(parse_dev(&line, "dev --stop --dir /d", &o), STATUS_OK);
    assert_int_equal(o.action, DEV_STOP);
    assert_int_equal(parse_dev(&line, "dev --start 2 --dir /d", &o), STATUS_OK);
    assert_int_equal(o.action, DEV_START);
    assert_int_equal(o.node, 2);
    assert_int_equal(o.wait_s, 120);
    assert_int_equal(parse_dev(&line, "dev --kill 16", &o), STATUS_OK);
    assert_int_equal(o.action, DEV_KILL);
    assert_int_equal(o.node, 16);
    assert_int_equal(parse_dev(&line, "dev --base-port 55533", &o), STATUS_OK);
}

struct refusal {
    const char *line;
    const char *message; /* part of it */
};

static void dev_refuses(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {"dev nonsense", "nonsense"},
        {"dev --nodse 3", "--nodes?"},
        {"dev --zzzzzzzz", "there is no option --zzzzzzzz; see horkos dev --help"},
        {"dev -x", "there is no option -x"},
        {"dev --nodes", "--nodes needs a value"},
        {"dev --detach=yes", "--detach takes no value"},
        {"dev --nodes 0", "1 to 16"},
        {"dev --nodes 17", "1 to 16"},
        {"dev --nodes 3x", "3x"},
        {"dev --nodes +3", "+3"},
        {"dev --nodes -3", "-3"},
        {"dev --nodes 99999999999999999999", "1 to 16"},
        {"dev --base-port 55534", "at most 55533"},
        {"dev --base-port 55536", "0 to 55535"},
        {"dev --lease 49", "50"},
        {"dev --dir=", "--dir"},
        {"dev --stop --start 1", "only one"},
        {"dev --stop --kill 1", "only one"},
        {"dev --stop --detach", "detach is for a new cluster"},
        {"dev --start 1 --set a.b=c", "set is for a new cluster"},
        {"dev --start 0", "1 to 16"},
        {"dev --wait 0", "1 to"},
        {"dev --set lease=3", "section.option=value"},
        {"dev --set .lease=3", "section.option=value"},
        {"dev --set cluster.=3", "section.option=value"},
        {"dev --set cluster.lease_ms", "section.option=value"},
        {"dev --set node.id=3", "itself"},
        {"dev --set peers.1=h:1", "itself"},
        {"dev --set clients.listen=h:1", "itself"},
        {"dev --set cluster.key_file=x", "itself"},
        {"dev --set a]b.c=d", "no section"},
        {"dev --set #a.b=c", "no section"},
        {"dev --set a.b=c\n[node]", "line break"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct line line;
        struct dev_options o;
        struct caught caught;
        catch_begin(&caught);
        int status = parse_dev(&line, refusals[i].line, &o);
        catch_end(&caught);
        if (status != STATUS_USAGE || strstr(caught.text, refusals[i].message) == NULL) {
            fail_msg("%s: status %d: %s", refusals[i].line, status, caught.text);
        }
    }
}

static void dev_bounds_its_sets(void **state)
{
    (void)state;
    char text[2048] = "dev";
    struct dev_options o;
    struct caught caught;
    struct line line;
    for (uint32_t i = 0; i < DEV_SETS_MAX / 2; i++) {
        strcat(text, " --set a.b=c");
    }
    assert_int_equal(parse_dev(&line, text, &o), STATUS_OK);
    assert_int_equal(o.sets_n, DEV_SETS_MAX / 2);

    /* More words than `line` holds. */
    char *argv[2 * DEV_SETS_MAX + 4];
    char dev[] = "dev";
    char set[] = "--set";
    char value[] = "a.b=c";
    int argc = 0;
    bool help = false;
    argv[argc++] = dev;
    for (uint32_t i = 0; i <= DEV_SETS_MAX; i++) {
        argv[argc++] = set;
        argv[argc++] = value;
    }
    argv[argc] = NULL;
    catch_begin(&caught);
    int status = dev_options_parse(argc, argv, &o, &help);
    catch_end(&caught);
    assert_int_equal(status, STATUS_USAGE);
    assert_non_null(strstr(caught.text, "at most 64"));
}

static void default_folder(void **state)
{
    (void)state;
    char dir[DEV_DIR_MAX];
    char lengthy[DEV_DIR_MAX + 2] = "/";
    assert_true(dev_default_dir("/s", "/h", dir));
    assert_string_equal(dir, "/s/horkos-dev");
    assert_true(dev_default_dir("", "/h", dir));
    assert_string_equal(dir, "/h/.local/state/horkos-dev");
    /* The specification of XDG_STATE_HOME says that relative paths are to be ignored. */
    assert_true(dev_default_dir("state", "/h", dir));
    assert_string_equal(dir, "/h/.local/state/horkos-dev");
    assert_true(dev_default_dir(NULL, NULL, dir));
    assert_string_equal(dir, "horkos-dev");
    memset(lengthy + 1, 'a', DEV_DIR_MAX);
    assert_false(dev_default_dir(lengthy, NULL, dir));
}

static int parse_ask(enum ask_command command, struct line *line, const char *text,
                     struct ask_options *options)
{
    bool help = false;
    cut(line, text);
    int status = ask_options_parse(command, line->argc, line->argv, options, &help);
    assert_false(help);
    return status;
}

static void asking_commands_take(void **state)
{
    (void)state;
    struct line line;
    struct ask_options o;
    assert_int_equal(parse_ask(ASK_STATUS, &line, "status", &o), STATUS_OK);
    assert_string_equal(o.address.target.host, "127.0.0.1");
    assert_int_equal(o.address.target.port, 6379);
    assert_null(o.address.target.socket_path);
    assert_null(o.address.password);
    assert_int_equal(parse_ask(ASK_STATUS, &line, "status -p 7003 --host h --json", &o), STATUS_OK);
    assert_int_equal(o.address.target.port, 7003);
    assert_string_equal(o.address.target.host, "h");
    assert_true(o.json);
    assert_int_equal(parse_ask(ASK_STATUS, &line, "status --socket /s", &o), STATUS_OK);
    assert_string_equal(o.address.target.socket_path, "/s");

    assert_int_equal(parse_ask(ASK_RECOVER, &line, "recover --port 7003", &o), STATUS_OK);
    assert_true(o.survivors == 0);
    assert_false(o.yes);
    assert_int_equal(o.wait_s, 60);
    assert_int_equal(parse_ask(ASK_RECOVER, &line, "recover 3 --yes 0 --wait 5 63", &o), STATUS_OK);
    assert_true(o.survivors == (nodeset_of(0) | nodeset_of(3) | nodeset_of(63)));
    assert_true(o.yes);
    assert_int_equal(o.wait_s, 5);

    assert_int_equal(parse_ask(ASK_SLOTS, &line, "slots -p 7002", &o), STATUS_OK);
    assert_int_equal(o.space, SPACES_MAX);
    assert_false(o.empty_lost);
    assert_int_equal(parse_ask(ASK_SLOTS, &line, "slots --space 2 --json", &o), STATUS_OK);
    assert_int_equal(o.space, 2);
    assert_true(o.json);
    assert_int_equal(parse_ask(ASK_SLOTS, &line, "slots --wait 5 --empty-lost --yes", &o),
                     STATUS_OK);
    assert_true(o.empty_lost && o.yes);
    assert_int_equal(o.wait_s, 5);
}

static void asking_commands_refuse(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {"status 3", "3"},
        {"status --yes", "no option --yes"},
        {"status --prot 1", "--port?"},
        {"status -p 0", "1 to 65535"},
        {"status -p 65536", "1 to 65535"},
        {"status -p", "needs a value"},
        {"status --socket /s -p 1", "either"},
        {"status --user u", "--password-file"},
        {"status --password-file /nonexistent/file", "No such file"},
        {"status --password-file /dev/null", "no password"},
        {"recover --json", "no option --json"},
        {"recover 64", "0 to 63"},
        {"recover x", "\"x\""},
        {"recover --wait 0", "1 to"},
        {"recover --empty-lost", "no option --empty-lost"},
        {"slots 3", "horkos slots: what does \"3\" mean"},
        {"slots --space 16", "0 to 15"},
        {"slots --yes", "--yes is for --empty-lost"},
        {"slots --wait 3", "--wait is for --empty-lost"},
        {"slots --empty-lost --json", "either --empty-lost or --json"},
        {"slots --empty-losd", "--empty-lost?"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct line line;
        struct ask_options o;
        struct caught caught;
        enum ask_command command = refusals[i].line[0] == 'r'   ? ASK_RECOVER
                                   : refusals[i].line[1] == 't' ? ASK_STATUS
                                                                : ASK_SLOTS;
        catch_begin(&caught);
        int status = parse_ask(command, &line, refusals[i].line, &o);
        catch_end(&caught);
        if (status != STATUS_USAGE || strstr(caught.text, refusals[i].message) == NULL) {
            fail_msg("%s: status %d: %s", refusals[i].line, status, caught.text);
        }
    }
}

static void password_is_a_files_first_line(void **state)
{
    (void)state;
    char path[] = "/tmp/tools_options_test.XXXXXX";
    struct line line;
    struct ask_options o;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "secret word\r\nmore\n", 18), 18);
    close(fd);
    /* In these lines "~" means a blank, which the name of a file may hold. */
    cut(&line, "status --user u --password-file x");
    line.argv[4] = path;
    bool help = false;
    assert_int_equal(ask_options_parse(ASK_STATUS, line.argc, line.argv, &o, &help), STATUS_OK);
    assert_string_equal(o.address.password, "secret word");
    assert_string_equal(o.address.user, "u");
    unlink(path);
}

static void server_options(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {"server", "--config FILE is missing"},
        {"server x.conf", "x.conf"},
        {"server --config", "needs a value"},
        {"server --config x --check --bootstrap", "--check"},
        {"server --cofnig x", "--config?"},
    };
    struct line line;
    struct server_command_options o;
    bool help = false;
    cut(&line, "server --config x.conf --bootstrap");
    assert_int_equal(server_options_parse(line.argc, line.argv, &o, &help), STATUS_OK);
    assert_string_equal(o.config, "x.conf");
    assert_true(o.bootstrap);
    assert_false(o.check);
    cut(&line, "server --options");
    assert_int_equal(server_options_parse(line.argc, line.argv, &o, &help), STATUS_OK);
    assert_true(o.document);
    cut(&line, "server --check --config x.conf");
    assert_int_equal(server_options_parse(line.argc, line.argv, &o, &help), STATUS_OK);
    assert_true(o.check);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct caught caught;
        cut(&line, refusals[i].line);
        catch_begin(&caught);
        int status = server_options_parse(line.argc, line.argv, &o, &help);
        catch_end(&caught);
        if (status != STATUS_USAGE || strstr(caught.text, refusals[i].message) == NULL) {
            fail_msg("%s: status %d: %s", refusals[i].line, status, caught.text);
        }
    }
}

static void nearest_name(void **state)
{
    (void)state;
    static const struct option options[] = {
        {"port", 0, NULL, 1}, {"password-file", 0, NULL, 2}, {"json", 0, NULL, 3}, {0}};
    char lengthy[200];
    assert_string_equal(options_nearest("prt", options), "port");
    assert_string_equal(options_nearest("pasword-fle=x", options), "password-file");
    assert_string_equal(options_nearest("json", options), "json");
    assert_null(options_nearest("verbose", options));
    memset(lengthy, 'p', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    assert_null(options_nearest(lengthy, options));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dev_defaults),
        cmocka_unit_test(dev_takes_all_options),
        cmocka_unit_test(dev_refuses),
        cmocka_unit_test(dev_bounds_its_sets),
        cmocka_unit_test(default_folder),
        cmocka_unit_test(asking_commands_take),
        cmocka_unit_test(asking_commands_refuse),
        cmocka_unit_test(password_is_a_files_first_line),
        cmocka_unit_test(server_options),
        cmocka_unit_test(nearest_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
