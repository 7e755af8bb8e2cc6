/* Whole servers, one process a node: a node alone; three that replicate, lose one, get it back,
 * wipe one that was paused, and stop. Wider tests with faults under load are written in Python. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/server.h"
#include "support/net_free_ports.h"

#define NODES 3u
#define BOUND_US 30000000u /* generous: sanitizers, other tests beside it */
#define REPLY_BYTES 16384u
#define LARGE 3000000u

struct node_process {
    pid_t pid;
    uint16_t client_port, peer_port;
};

struct rig {
    char folder[64];
    uint32_t nodes;
    const char *transport; /* of peers */
    struct node_process node[NODES];
};

/* ---- Processes ---- */

static void write_files(const struct rig *r)
{
    char path[128];
    snprintf(path, sizeof path, "%s/key", r->folder);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(
        write(fd, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n", 65), 65);
    (void)close(fd);
    for (uint32_t i = 0; i < r->nodes; i++) {
        snprintf(path, sizeof path, "%s/%u.conf", r->folder, i);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "[node]\nid = %u\nworkers = 2\nlog_file = %u.log\n", i, i);
        fprintf(f, "peer_transport = %s\n", r->transport);
        fprintf(f, "[cluster]\nname = smoke\nkey_file = key\n[peers]\n");
        for (uint32_t k = 0; k < r->nodes; k++) {
            fprintf(f, "%u = 127.0.0.1:%u\n", k, r->node[k].peer_port);
        }
        fprintf(f, "[clients]\nlisten = 127.0.0.1:%u\n", r->node[i].client_port);
        assert_int_equal(fclose(f), 0);
    }
}

static _Noreturn void run_node(const struct rig *r, uint32_t i, bool bootstrap, int ready_fd)
{
    static struct config config;
    char path[128];
    char error[CONFIG_ERROR_MAX];
    snprintf(path, sizeof path, "%s/%u.conf", r->folder, i);
    if (config_read(path, &config, error, sizeof error) != HK_OK) {
        fprintf(stderr, "%s\n", error);
        _exit(3);
    }
    struct server_options options = {.bootstrap = bootstrap, .ready_fd = ready_fd};
    exit(server_run(&config, &options));
}

/* Returns once its listeners stand. */
static void start_node(struct rig *r, uint32_t i, bool bootstrap)
{
    int ends[2];
    char line[16] = "";
    assert_int_equal(pipe(ends), 0);
    r->node[i].pid = fork();
    assert_true(r->node[i].pid >= 0);
    if (r->node[i].pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves no node behind */
        (void)close(ends[0]);
        run_node(r, i, bootstrap, ends[1]);
    }
    (void)close(ends[1]);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&p, 1, BOUND_US / 1000), 1);
    assert_int_equal(read(ends[0], line, sizeof line - 1), 6);
    assert_string_equal(line, "ready\n");
    (void)close(ends[0]);
}

/* The exit status, or minus the signal. */
static int wait_node(struct rig *r, uint32_t i)
{
    int status = 0;
    assert_int_equal(waitpid(r->node[i].pid, &status, 0), r->node[i].pid);
    r->node[i].pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void signal_node(const struct rig *r, uint32_t i, int number)
{
    assert_int_equal(kill(r->node[i].pid, number), 0);
}

static int make_rig(void **state, uint32_t nodes, const char *transport)
{
    struct rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    snprintf(r->folder, sizeof r->folder, "/tmp/horkos-smoke-XXXXXX");
    assert_non_null(mkdtemp(r->folder));
    r->nodes = nodes;
    r->transport = transport;
    uint16_t ports[2 * NODES];
    free_ports(2 * nodes, ports);
    for (uint32_t i = 0; i < nodes; i++) {
        r->node[i].client_port = ports[2 * i];
        r->node[i].peer_port = ports[2 * i + 1];
    }
    write_files(r);
    for (uint32_t i = 0; i < nodes; i++) {
        start_node(r, i, false);
    }
    *state = r;
    return 0;
}

static int one_node(void **state)
{
    return make_rig(state, 1, "tcp");
}

static int three_nodes(void **state)
{
    return make_rig(state, NODES, "tcp");
}

static int three_nodes_shm(void **state)
{
    return make_rig(state, NODES, "shm");
}

/* Ends what a failed test left running. */
static int end_rig(void **state)
{
    struct rig *r = *state;
    char command[128];
    for (uint32_t i = 0; i < r->nodes; i++) {
        if (r->node[i].pid > 0) {
            (void)kill(r->node[i].pid, SIGKILL);
            (void)wait_node(r, i);
        }
    }
    snprintf(command, sizeof command, "rm -rf %s", r->folder);
    int failed = system(command);
    free(r);
    return failed;
}

/* ---- A client ---- */

static int dial(const struct rig *r, uint32_t i)
{
    struct timeval bound = {.tv_sec = BOUND_US / 1000000u};
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons(r->node[i].client_port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    assert_int_equal(connect(fd, (struct sockaddr *)(void *)&a, sizeof a), 0);
    return fd;
}

/* Sends an inline command and takes the reply: a line, or a bulk string without its header. */
static void ask_on(int fd, const char *command, char reply[REPLY_BYTES])
{
    uint32_t n = 0;
    assert_int_equal(send(fd, command, strlen(command), MSG_NOSIGNAL), (int)strlen(command));
    assert_int_equal(send(fd, "\r\n", 2, MSG_NOSIGNAL), 2);
    for (;;) {
        ssize_t got = recv(fd, reply + n, REPLY_BYTES - 1 - n, 0);
        assert_true(got > 0);
        n += (uint32_t)got;
        reply[n] = '\0';
        char *end = strstr(reply, "\r\n");
        if (end == NULL) {
            continue;
        }
        long bulk = reply[0] == '$' ? strtol(reply + 1, NULL, 10) : -1;
        if (bulk < 0) {
            *end = '\0';
            return;
        }
        uint32_t at = (uint32_t)(end + 2 - reply);
        if (n >= at + (uint32_t)bulk + 2) {
            memmove(reply, reply + at, (size_t)bulk);
            reply[bulk] = '\0';
            return;
        }
    }
}

static void ask(const struct rig *r, uint32_t i, const char *command, char reply[REPLY_BYTES])
{
    int fd = dial(r, i);
    ask_on(fd, command, reply);
    (void)close(fd);
}

static void expect(const struct rig *r, uint32_t i, const char *command, const char *reply)
{
    char got[REPLY_BYTES];
    ask(r, i, command, got);
    assert_string_equal(got, reply);
}

/* Asks until the status says this; bounded. */
static void await_status(const struct rig *r, uint32_t i, const char *text)
{
    char got[REPLY_BYTES];
    uint64_t until = clock_boot_us() + BOUND_US;
    do {
        assert_true(clock_boot_us() < until);
        ask(r, i, "HORKOS STATUS", got);
    } while (strstr(got, text) == NULL);
}

static void await_serving(const struct rig *r, uint32_t i)
{
    await_status(r, i, "\"can_serve\":true");
}

/* Everything that comes until the other side closes. */
static uint32_t take_all(int fd, char *got)
{
    uint32_t n = 0;
    ssize_t more;
    while ((more = recv(fd, got + n, REPLY_BYTES - n, 0)) > 0) {
        n += (uint32_t)more;
    }
    assert_int_equal(more, 0);
    return n;
}

/* ---- Tests ---- */

/* Replies come before the close that QUIT asks for, and what follows it is not run. */
static void a_pipeline_ends_with_quit(const struct rig *r)
{
    static const char pipeline[] = "SET q 1\r\nINCR q\r\nGET q\r\nQUIT\r\nINCR q\r\n";
    char got[REPLY_BYTES];
    int fd = dial(r, 0);
    assert_int_equal(send(fd, pipeline, sizeof pipeline - 1, MSG_NOSIGNAL), sizeof pipeline - 1);
    uint32_t n = take_all(fd, got);
    assert_int_equal(n, 5 + 4 + 7 + 5);
    assert_memory_equal(got, "+OK\r\n:2\r\n$1\r\n2\r\n+OK\r\n", n);
    (void)close(fd);
    expect(r, 0, "GET q", "2");
}

/* Who sends and shuts its half at once is served to the end. */
static void a_half_closed_client_is_served(const struct rig *r)
{
    static const char pipeline[] = "INCR h\r\nINCR h\r\nINCR h\r\n";
    char got[REPLY_BYTES];
    for (uint32_t i = 0; i < 50; i++) {
        int fd = dial(r, 0);
        assert_int_equal(send(fd, pipeline, sizeof pipeline - 1, MSG_NOSIGNAL),
                         sizeof pipeline - 1);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        uint32_t n = take_all(fd, got);
        assert_true(n >= 3 * 4);
        assert_memory_equal(got + n - 2, "\r\n", 2);
        (void)close(fd);
    }
    expect(r, 0, "GET h", "150");
}

/* The key of the pipelines before is the hottest. */
static void hot_keys_are_listed(const struct rig *r)
{
    static const char expected[] = "*1\r\n*2\r\n$1\r\nh\r\n:";
    char got[REPLY_BYTES];
    int fd = dial(r, 0);
    assert_int_equal(send(fd, "HOTKEYS 1\r\n", 11, MSG_NOSIGNAL), 11);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    uint32_t n = take_all(fd, got);
    assert_in_range(n, sizeof expected + 2, sizeof expected + 10);
    assert_memory_equal(got, expected, sizeof expected - 1);
    assert_in_range(got[sizeof expected - 1], '1', '9');
    (void)close(fd);
}

static void a_node_alone(void **state)
{
    struct rig *r = *state;
    char got[REPLY_BYTES];
    await_serving(r, 0);
    expect(r, 0, "SET a 1", "+OK");
    expect(r, 0, "INCR a", ":2");
    expect(r, 0, "GET a", "2");
    expect(r, 0, "DBSIZE", ":1");
    ask(r, 0, "INFO horkos", got);
    assert_non_null(strstr(got, "status:serving"));
    assert_non_null(strstr(got, "workers:2"));
    expect(r, 0, "HORKOS RECOVER 5",
           "-ERR name the nodes that are left, each one of those configured");

    a_pipeline_ends_with_quit(r);
    a_half_closed_client_is_served(r);
    hot_keys_are_listed(r);
    signal_node(r, 0, SIGTERM);
    assert_int_equal(wait_node(r, 0), 0);

    /* It was part of a cluster that has lost everything: only the operator may begin anew. */
    start_node(r, 0, false);
    await_status(r, 0, "\"status\":\"refusing\"");
    ask(r, 0, "GET a", got);
    assert_memory_equal(got, "-CLUSTERDOWN", 12);
    signal_node(r, 0, SIGTERM);
    assert_int_equal(wait_node(r, 0), 0);
    start_node(r, 0, true);
    await_serving(r, 0);
    expect(r, 0, "GET a", "$-1");
}

static void three_replicate(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < NODES; i++) {
        await_serving(r, i);
    }
    for (uint32_t i = 0; i < 30; i++) {
        char command[32];
        char value[16];
        snprintf(command, sizeof command, "SET k v%u", i);
        snprintf(value, sizeof value, "v%u", i);
        expect(r, i % 3, command, "+OK");
        expect(r, (i + 1) % 3, "GET k", value);
        expect(r, (i + 2) % 3, "GET k", value);
    }
    expect(r, 1, "WAIT 2 0", ":2");
}

static void a_killed_node_comes_back(void **state)
{
    struct rig *r = *state;
    await_serving(r, 0);
    await_serving(r, 2);
    expect(r, 0, "SET before 1", "+OK");
    signal_node(r, 1, SIGKILL);
    assert_int_equal(wait_node(r, 1), -SIGKILL);
    await_status(r, 0, "{\"id\":1,\"role\":\"none\",\"live\":false");
    expect(r, 2, "SET between 2", "+OK");
    start_node(r, 1, false);
    await_serving(r, 1);
    expect(r, 1, "GET before", "1");
    expect(r, 1, "GET between", "2");
}

static void a_paused_node_is_wiped_and_rejoins(void **state)
{
    struct rig *r = *state;
    await_serving(r, 0);
    await_serving(r, 1);
    await_serving(r, 2);
    expect(r, 2, "SET x old", "+OK");
    int fd = dial(r, 2); /* a client that stays connected all the while */
    char got[REPLY_BYTES];
    ask_on(fd, "GET x", got);
    assert_string_equal(got, "old");
    signal_node(r, 2, SIGSTOP);
    await_status(r, 0, "{\"id\":2,\"role\":\"none\",\"live\":false");
    expect(r, 0, "SET x new", "+OK");
    signal_node(r, 2, SIGCONT);
    uint64_t until = clock_boot_us() + BOUND_US;
    do {
        assert_true(clock_boot_us() < until);
        ask_on(fd, "GET x", got);
        assert_string_not_equal(got, "old");
    } while (got[0] == '-');
    assert_string_equal(got, "new");
    await_status(r, 2, "\"wipes\":1");
    (void)close(fd);
}

static void a_node_leaves(void **state)
{
    struct rig *r = *state;
    await_serving(r, 0);
    await_serving(r, 1);
    await_serving(r, 2);
    expect(r, 0, "SET y 1", "+OK");
    expect(r, 0, "HORKOS LEAVE", "+OK");
    assert_int_equal(wait_node(r, 0), 0);
    await_status(r, 1, "{\"id\":0,\"role\":\"none\",\"live\":false");
    expect(r, 2, "INCR y", ":2");
}

static void survivors_recover_and_take_the_others_back(void **state)
{
    struct rig *r = *state;
    char got[REPLY_BYTES];
    for (uint32_t i = 0; i < NODES; i++) {
        await_serving(r, i);
    }
    expect(r, 1, "SET kept yes", "+OK");
    ask(r, 0, "HORKOS RECOVER 0", got);
    assert_non_null(strstr(got, "nothing to recover"));
    for (uint32_t i = 1; i < NODES; i++) {
        signal_node(r, i, SIGKILL);
        assert_int_equal(wait_node(r, i), -SIGKILL);
    }
    await_status(r, 0, "\"status\":\"lost\"");
    ask(r, 0, "GET kept", got);
    assert_memory_equal(got, "-CLUSTERDOWN", 12);
    expect(r, 0, "HORKOS RECOVER 0", "+OK");
    await_serving(r, 0);
    expect(r, 0, "GET kept", "yes");
    for (uint32_t i = 1; i < NODES; i++) {
        start_node(r, i, false);
        await_serving(r, i);
        expect(r, i, "GET kept", "yes");
    }
}

/* Two workers a node: four connections with each peer, all of them over rings. */
static void peers_share_memory(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < NODES; i++) {
        await_serving(r, i);
        await_status(r, i, "\"connections\":8,\"shared\":8");
    }
    /* Larger than a ring; it goes from node 0 to both others. */
    int fd = dial(r, 0);
    char *value = malloc(LARGE + 64);
    char got[REPLY_BYTES];
    assert_non_null(value);
    int head = snprintf(value, 64, "*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$%u\r\n", LARGE);
    memset(value + head, 'v', LARGE);
    memcpy(value + head + LARGE, "\r\n", 2);
    for (size_t at = 0; at < (size_t)head + LARGE + 2;) {
        ssize_t n = send(fd, value + at, (size_t)head + LARGE + 2 - at, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += (size_t)n;
    }
    free(value);
    ask_on(fd, "PING", got);
    assert_string_equal(got, "+OK");
    (void)close(fd);
    expect(r, 1, "STRLEN large", ":3000000");
    expect(r, 2, "STRLEN large", ":3000000");
}

/* With both peers paused nobody can drop it: it still waits when the second signal comes. */
static void a_second_signal_forces(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < NODES; i++) {
        await_serving(r, i);
    }
    signal_node(r, 1, SIGSTOP);
    signal_node(r, 2, SIGSTOP);
    signal_node(r, 0, SIGTERM);
    signal_node(r, 0, SIGINT);
    assert_int_equal(wait_node(r, 0), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_node_alone, one_node, end_rig),
        cmocka_unit_test_setup_teardown(three_replicate, three_nodes, end_rig),
        cmocka_unit_test_setup_teardown(a_killed_node_comes_back, three_nodes, end_rig),
        cmocka_unit_test_setup_teardown(a_paused_node_is_wiped_and_rejoins, three_nodes, end_rig),
        cmocka_unit_test_setup_teardown(a_node_leaves, three_nodes, end_rig),
        cmocka_unit_test_setup_teardown(peers_share_memory, three_nodes_shm, end_rig),
        cmocka_unit_test_setup_teardown(three_replicate, three_nodes_shm, end_rig),
        cmocka_unit_test_setup_teardown(a_killed_node_comes_back, three_nodes_shm, end_rig),
        cmocka_unit_test_setup_teardown(a_paused_node_is_wiped_and_rejoins, three_nodes_shm,
                                        end_rig),
        cmocka_unit_test_setup_teardown(survivors_recover_and_take_the_others_back, three_nodes,
                                        end_rig),
        cmocka_unit_test_setup_teardown(a_second_signal_forces, three_nodes, end_rig),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
