/* The parts of `horkos dev`: configuration files, ports, the folder, processes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tools/dev_cluster.h"
#include "tools/dev_config.h"
#include "tools/dev_folder.h"
#include "tools/dev_ports.h"
#include "tools/dev_processes.h"

#define WAIT_US (UINT64_C(20) * 1000000)

static char dir[] = "/tmp/tools_dev_test.XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static struct dev_set set_of(const char *text)
{
    struct dev_set set;
    assert_null(dev_set_parse(text, &set));
    return set;
}

static char *config_text(const struct dev_options *options, const struct dev_ports *ports,
                         uint32_t node)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    dev_config_write(options, ports, node, to);
    assert_int_equal(fclose(to), 0);
    char *copy = strdup(text);
    assert_non_null(copy);
    free(text);
    return copy;
}

static struct dev_ports two_nodes(void)
{
    struct dev_ports ports = {.nodes = 2};
    ports.client[1].port = 7001;
    ports.client[2].port = 7002;
    ports.peer[1].port = 17001;
    ports.peer[2].port = 17002;
    return ports;
}

static void config_of_a_node(void **state)
{
    (void)state;
    struct dev_options options = {.lease_ms = 150};
    struct dev_ports ports = two_nodes();
    char *text = config_text(&options, &ports, 2);
    const char *body = strchr(text, '\n') + 1;
    assert_int_equal(text[0], '#');
    assert_string_equal(body, "\n[node]\nid = 2\nworkers = 1\nspin_us = 0\n"
                              "state_file = node-2.state\n"
                              "\n[cluster]\nname = dev\nkey_file = cluster.key\nlease_ms = 150\n"
                              "\n[clients]\nlisten = 127.0.0.1:7002\n"
                              "\n[peers]\n1 = 127.0.0.1:17001\n2 = 127.0.0.1:17002\n"
                              "\n[space 0]\nengine = hermes\n"
                              "\n[space 1]\nengine = zeus\n"
                              "\n[space 2]\nengine = galene\n"
                              "\n[space 3]\nengine = lotus\n");
    free(text);
}

static void sets_replace_and_add(void **state)
{
    (void)state;
    struct dev_options options = {.lease_ms = 150};
    struct dev_ports ports = two_nodes();
    options.sets[options.sets_n++] = set_of("space 1.engine=hermes");
    options.sets[options.sets_n++] = set_of("cluster.lease_ms=300");
    options.sets[options.sets_n++] = set_of("user a.b.password=one");
    options.sets[options.sets_n++] = set_of("space 1.memory_max=1gb");
    options.sets[options.sets_n++] = set_of("user a.b.password=two=2");
    options.sets[options.sets_n++] = set_of("clients.requirepass=");
    options.sets[options.sets_n++] = set_of("space 2.memory_max=2gb");
    options.sets[options.sets_n++] = set_of("space 0.engine=zab");
    char *text = config_text(&options, &ports, 1);
    assert_string_equal(strchr(text, '\n') + 1,
                        "\n[node]\nid = 1\nworkers = 1\nspin_us = 0\n"
                        "state_file = node-1.state\n"
                        "\n[cluster]\nlease_ms = 300\nname = dev\nkey_file = cluster.key\n"
                        "\n[clients]\nrequirepass = \nlisten = 127.0.0.1:7001\n"
                        "\n[peers]\n1 = 127.0.0.1:17001\n2 = 127.0.0.1:17002\n"
                        "\n[space 0]\nengine = zab\n"
                        "\n[space 1]\nengine = hermes\nmemory_max = 1gb\n"
                        "\n[space 2]\nmemory_max = 2gb\nengine = galene\n"
                        "\n[space 3]\nengine = lotus\n"
                        "\n[user a.b]\npassword = one\npassword = two=2\n");
    free(text);
}

static void contacts_are_read(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",     "host", ":1",    "host:", "host:0", "h:1x",   "h:65536",
        "h: 1", "h:-1", "unix:", "[]:1x", "h:+1",   "[::1]:", "h:1:99999"};
    struct dev_contact contact;
    assert_true(dev_contact_parse("127.0.0.1:7001", &contact));
    assert_string_equal(contact.host, "127.0.0.1");
    assert_int_equal(contact.port, 7001);
    assert_string_equal(contact.socket_path, "");
    assert_true(dev_contact_parse("[::1]:65535", &contact));
    assert_string_equal(contact.host, "::1");
    assert_int_equal(contact.port, 65535);
    assert_true(dev_contact_parse("unix:/a:1", &contact));
    assert_string_equal(contact.socket_path, "/a:1");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (dev_contact_parse(bad[i], &contact)) {
            fail_msg("taken: \"%s\"", bad[i]);
        }
    }
}

static void contact_of_a_file(void **state)
{
    (void)state;
    char path[DEV_PATH_MAX];
    struct dev_contact contact;
    static const char text[] = "# a file\n[node]\nid = 1\n[clients]\nlisten = 127.0.0.1:7009\n"
                               "listen = 127.0.0.1:7010\nrequirepass = secret word\n"
                               "[user default]\npassword = other\n";
    dev_path(dir, "contact.conf", path);
    assert_true(dev_write_file(path, text, sizeof text - 1, 0600));
    assert_true(dev_config_contact(path, &contact));
    assert_int_equal(contact.port, 7009);
    assert_string_equal(contact.password, "secret word");
    static const char hashed[] = "[user default]\npassword = blake2b:00\n[clients]\nlisten = h:1\n";
    assert_true(dev_write_file(path, hashed, sizeof hashed - 1, 0600));
    assert_true(dev_config_contact(path, &contact));
    assert_string_equal(contact.password, "");
    unlink(path);
}

static void ports_outside_the_kernels_range(void **state)
{
    (void)state;
    static const uint32_t ranges[][3] = {
        /* low, high, how many may be chosen */
        {32768, 60999, 22768 + 4536},
        {1024, 65535, 64512},
        {10000, 65535, 64512},
        {9000, 20000, 45535},
        {50000, 65535, 40000},
        {2000, 9999, 55536},
        {10000, 10000, 55535},
        {65535, 65535, 55535},
        {1, 64535, 1000},
        {1, 64536, 64512},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        uint32_t low = ranges[i][0];
        uint32_t high = ranges[i][1];
        uint32_t n = dev_port_count(low, high);
        uint8_t *seen = calloc(65536, 1);
        assert_non_null(seen);
        assert_int_equal(n, ranges[i][2]);
        for (uint32_t k = 0; k < n; k++) {
            uint16_t port = dev_port_at(k, low, high);
            assert_int_equal(seen[port], 0);
            seen[port] = 1;
            assert_true(port >= 1024);
            assert_true(n == 64512 || (port >= 10000 && (port < low || port > high)));
            assert_int_equal(dev_port_at(k + n, low, high), port);
        }
        free(seen);
    }
}

/* Binds and listens as a node does: 0, or errno. The socket stays open. */
static int listen_at(uint16_t port, int *fd_out)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *fd_out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(*fd_out >= 0);
    assert_int_equal(setsockopt(*fd_out, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    bool listens =
        bind(*fd_out, (struct sockaddr *)&address, sizeof address) == 0 && listen(*fd_out, 1) == 0;
    return listens ? 0 : errno;
}

/* While ports are held, nobody else gets them, but the node that they are held for can listen; and
 * when that has happened, they are no longer held. */
static void held_ports_collide_with_nobody(void **state)
{
    (void)state;
    enum { CLUSTERS = 20 };
    struct dev_ports *clusters = calloc(CLUSTERS, sizeof *clusters);
    uint8_t *seen = calloc(65536, 1);
    int listeners[2] = {-1, -1};
    assert_non_null(clusters);
    assert_non_null(seen);
    for (uint32_t i = 0; i < CLUSTERS; i++) {
        assert_true(dev_ports_hold(&clusters[i], 5, 0, 10000));
        for (uint32_t node = 1; node <= 5; node++) {
            assert_int_equal(seen[clusters[i].client[node].port]++, 0);
            assert_int_equal(seen[clusters[i].peer[node].port]++, 0);
        }
    }
    assert_int_equal(listen_at(clusters[0].client[3].port, &listeners[0]), 0);
    assert_int_equal(listen_at(clusters[0].client[3].port, &listeners[1]), EADDRINUSE);
    close(listeners[1]);
    dev_ports_release_node(&clusters[0], 3);
    assert_int_equal(clusters[0].client[3].held, -1);
    assert_int_equal(listen_at(clusters[0].client[3].port, &listeners[1]), EADDRINUSE);
    close(listeners[0]);
    close(listeners[1]);
    for (uint32_t i = 0; i < CLUSTERS; i++) {
        dev_ports_release(&clusters[i]);
    }
    free(seen);
    free(clusters);
}

static void a_given_port_in_use_is_an_error(void **state)
{
    (void)state;
    struct dev_ports found;
    struct dev_ports ports;
    int listener = -1;
    /* A port that is free, with peers' ports that are likely to be. */
    assert_true(dev_ports_hold(&found, 1, 0, 10000));
    uint16_t port = found.client[1].port;
    assert_int_equal(listen_at(port, &listener), 0);
    dev_ports_release(&found);
    fprintf(stderr, "an error message is expected:\n");
    assert_false(dev_ports_hold(&ports, 1, port, 1));
    assert_int_equal(ports.client[1].held, -1);
    assert_int_equal(ports.peer[1].held, -1);
    close(listener);
}

static void the_folder(void **state)
{
    (void)state;
    char path[DEV_PATH_MAX];
    char old[DEV_PATH_MAX];
    char deep[DEV_DIR_MAX];
    char full[DEV_DIR_MAX];
    struct stat status;
    static const char *const kept[] = {"node-17.conf", "node-0.pid",   "node-x.conf", "node-1.txt",
                                       "node-1.confx", "node-01x.pid", "other"};
    snprintf(deep, sizeof deep, "%s/a/b//c", dir);
    assert_true(dev_folder_make(deep));
    snprintf(full, sizeof full, "%s/a/b/c", dir);
    assert_string_equal(deep, full);
    assert_true(dev_folder_make(deep));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        dev_path(deep, kept[i], path);
        assert_true(dev_write_file(path, "x", 1, 0600));
    }
    assert_true(dev_folder_nodes(deep, "conf") == 0 && dev_folder_nodes(deep, "pid") == 0);
    dev_node_path(deep, 1, "conf", path);
    assert_true(dev_write_file(path, "x", 1, 0600));
    dev_node_path(deep, 16, "conf", path);
    assert_true(dev_write_file(path, "x", 1, 0600));
    dev_node_path(deep, 16, "log", path);
    assert_true(dev_write_file(path, "log", 3, 0600));
    assert_true(dev_folder_nodes(deep, "conf") == (nodeset_of(1) | nodeset_of(16)));

    assert_true(dev_folder_clear(deep));
    assert_true(dev_folder_nodes(deep, "conf") == 0);
    dev_node_path(deep, 16, "log.old", old);
    assert_int_equal(stat(old, &status), 0);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        dev_path(deep, kept[i], path);
        assert_int_equal(stat(path, &status), 0);
    }
    int lock = dev_folder_lock(deep);
    assert_true(lock >= 0);
    fprintf(stderr, "an error message is expected:\n");
    assert_int_equal(dev_folder_lock(deep), -1);
    close(lock);
    lock = dev_folder_lock(deep);
    assert_true(lock >= 0);
    close(lock);
}

static void the_key(void **state)
{
    (void)state;
    char path[DEV_PATH_MAX];
    char text[2][80];
    struct stat status;
    dev_path(dir, "cluster.key", path);
    for (int i = 0; i < 2; i++) {
        assert_true(dev_write_key(path));
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        assert_int_equal(status.st_size, 65);
        int fd = open(path, O_RDONLY);
        assert_int_equal(read(fd, text[i], sizeof text[i]), 65);
        close(fd);
        assert_int_equal(strspn(text[i], "0123456789abcdef"), 64);
        assert_int_equal(text[i][64], '\n');
    }
    assert_memory_not_equal(text[0], text[1], 64);
}

static void tail_of_a_file(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t lines;
        const char *tail;
    } cases[] = {
        {"", 3, ""},
        {"one\n", 3, "> one\n"},
        {"one", 3, "> one\n"},
        {"one\ntwo\nthree\n", 2, "> two\n> three\n"},
        {"one\ntwo\nthree", 2, "> two\n> three\n"},
        {"one\n\n\n", 2, "> \n> \n"},
    };
    char path[DEV_PATH_MAX];
    dev_path(dir, "tail", path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = NULL;
        size_t n = 0;
        FILE *to = open_memstream(&text, &n);
        assert_true(dev_write_file(path, cases[i].text, strlen(cases[i].text), 0600));
        dev_print_tail(path, cases[i].lines, "> ", to);
        assert_int_equal(fclose(to), 0);
        assert_string_equal(text, cases[i].tail);
        free(text);
    }
    unlink(path);
    dev_print_tail(path, 3, "> ", stderr);
}

static void pid_files(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "12",
        "12\n",
        "12\nstarted 5\n",
        "0\nstarted 5 boot\n",
        "-1\nstarted 5 boot\n",
        "12\nstarted 5 boot",
        "12\nstarted 5 boot\nmore\n",
        " 12\nstarted 5 boot\n",
        "12 started 5 boot\n",
        "012\nstarted 5 boot\n",
        "99999999999\nstarted 5 boot\n",
        "12\nstarted 99999999999999999999 boot\n",
        "12\nstarted -5 boot\n",
    };
    struct dev_process process = {.pid = 12, .started = 5, .boot = "boot"};
    struct dev_process again;
    char text[160];
    uint32_t n = dev_process_write(&process, text);
    assert_int_equal(n, strlen("12\nstarted 5 boot\n"));
    assert_memory_equal(text, "12\nstarted 5 boot\n", n);
    assert_true(dev_process_parse(bytes_of(text, n), &again));
    assert_int_equal(again.pid, 12);
    assert_true(again.started == 5);
    assert_string_equal(again.boot, "boot");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (dev_process_parse(bytes_of(bad[i], (uint32_t)strlen(bad[i])), &again)) {
            fail_msg("taken: \"%s\"", bad[i]);
        }
    }
}

static void read_until(const char *path, const char *wanted)
{
    uint64_t end_us = clock_boot_us() + WAIT_US;
    for (;;) {
        char text[256];
        int fd = open(path, O_RDONLY);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        close(fd);
        text[n > 0 ? n : 0] = '\0';
        if (strstr(text, wanted) != NULL) {
            return;
        }
        if (clock_boot_us() > end_us) {
            fail_msg("%s holds \"%s\", not \"%s\"", path, text, wanted);
        }
        (void)poll(NULL, 0, 5);
    }
}

static void ends_in_time(const struct dev_process *process, char how[80])
{
    uint64_t end_us = clock_boot_us() + WAIT_US;
    while (dev_process_runs(process, how)) {
        assert_true(clock_boot_us() < end_us);
        (void)poll(NULL, 0, 5);
    }
}

static struct dev_process run_shell(const char *script, const char *log)
{
    struct dev_process process;
    char sh[] = "sh";
    char option[] = "-c";
    char text[256];
    char *const argv[] = {sh, option, text, NULL};
    const struct dev_program program = {.path = "/bin/sh", .argv = argv, .log = log};
    snprintf(text, sizeof text, "%s", script);
    assert_true(dev_process_start(&program, &process));
    return process;
}

static void processes(void **state)
{
    (void)state;
    char log[DEV_PATH_MAX];
    char pid[DEV_PATH_MAX];
    char how[80];
    int pipe_fds[2];
    struct dev_process known;
    dev_path(dir, "process.log", log);
    dev_path(dir, "process.pid", pid);
    /* An open file that the child must not keep: whoever reads the pipe would wait for its end. */
    assert_int_equal(pipe(pipe_fds), 0);
    struct dev_process process =
        run_shell("trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 1; done", log);
    read_until(log, "ready");
    close(pipe_fds[1]);
    char byte;
    assert_int_equal(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);

    assert_true(dev_process_runs(&process, how));
    assert_int_equal(getsid(process.pid), process.pid);
    assert_true(dev_process_save(&process, pid));
    dev_process_load(pid, &known);
    assert_true(dev_process_runs(&known, how));

    /* Another one with this id, started at another time or before the machine was: not ours. */
    struct dev_process other = process;
    other.started++;
    assert_false(dev_process_runs(&other, how));
    dev_process_signal(&other, SIGKILL);
    other = process;
    other.boot[0] = '?';
    assert_false(dev_process_runs(&other, how));
    dev_process_signal(&other, SIGKILL);
    assert_true(dev_process_runs(&process, how));

    dev_process_signal(&known, SIGTERM);
    ends_in_time(&process, how);
    assert_string_equal(how, "exit status 3");
    read_until(log, "told");
    dev_process_signal(&process, SIGTERM);

    process = run_shell("kill -9 $$", log);
    ends_in_time(&process, how);
    assert_string_equal(how, "Killed");
    unlink(pid);
    dev_process_load(pid, &known);
    assert_int_equal(known.pid, 0);
    assert_false(dev_process_runs(&known, how));
    dev_process_signal(&known, SIGKILL);
}

/* Signals that come while a process is busy are one to it, so that two may not be two. */
static void nodes_are_told_to_end_until_they_do(void **state)
{
    (void)state;
    static struct dev_cluster cluster;
    char log[DEV_PATH_MAX];
    dev_path(dir, "stop.log", log);
    snprintf(cluster.dir, sizeof cluster.dir, "%s", dir);
    cluster.nodes = nodeset_of(1);
    cluster.node[1].process = run_shell("n=0; trap 'n=$((n+1)); [ $n -lt 4 ] || exit 2' TERM; "
                                        "echo ready; while :; do sleep 0.01; done",
                                        log);
    read_until(log, "ready");
    assert_true(dev_cluster_stop(&cluster));
    assert_string_equal(cluster.node[1].how, "exit status 2");
}

static void a_program_that_cannot_be_executed(void **state)
{
    (void)state;
    char log[DEV_PATH_MAX];
    char how[80];
    struct dev_process process;
    char name[] = "nothing";
    char *const argv[] = {name, NULL};
    dev_path(dir, "nothing.log", log);
    const struct dev_program program = {.path = "/nonexistent/program", .argv = argv, .log = log};
    assert_true(dev_process_start(&program, &process));
    ends_in_time(&process, how);
    assert_string_equal(how, "exit status 127");
    read_until(log, "cannot be executed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_of_a_node),
        cmocka_unit_test(sets_replace_and_add),
        cmocka_unit_test(contacts_are_read),
        cmocka_unit_test(contact_of_a_file),
        cmocka_unit_test(ports_outside_the_kernels_range),
        cmocka_unit_test(held_ports_collide_with_nobody),
        cmocka_unit_test(a_given_port_in_use_is_an_error),
        cmocka_unit_test(the_folder),
        cmocka_unit_test(the_key),
        cmocka_unit_test(tail_of_a_file),
        cmocka_unit_test(pid_files),
        cmocka_unit_test(processes),
        cmocka_unit_test(nodes_are_told_to_end_until_they_do),
        cmocka_unit_test(a_program_that_cannot_be_executed),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
