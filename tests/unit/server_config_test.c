#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "resp/glob.h"
#include "server/config.h"

#define KEY_TEXT "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

/* A folder of its own for each test that needs files. */
struct folder {
    char at[64];
    char file[128]; /* at/horkos.conf */
};

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static char *read_file(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(file);
    (void)fread(text, 1, (1 << 16) - 1, file);
    (void)fclose(file);
    return text;
}

static void folder_path(const struct folder *f, const char *name, char out[256])
{
    (void)snprintf(out, 256, "%s/%s", f->at, name);
}

static void folder_make(struct folder *f)
{
    char key[256];
    (void)snprintf(f->at, sizeof f->at, "/tmp/horkos-config-XXXXXX");
    assert_non_null(mkdtemp(f->at));
    (void)snprintf(f->file, sizeof f->file, "%s/horkos.conf", f->at);
    folder_path(f, "cluster.key", key);
    write_file(key, KEY_TEXT, 0600);
}

static void folder_remove(const struct folder *f)
{
    char key[256];
    folder_path(f, "cluster.key", key);
    (void)unlink(key);
    (void)unlink(f->file);
    assert_int_equal(rmdir(f->at), 0);
}

static struct config *parse(const char *text)
{
    char error[CONFIG_ERROR_MAX] = "";
    struct config *config = malloc(sizeof *config);
    assert_non_null(config);
    if (config_parse(bytes_of(text, (uint32_t)strlen(text)), NULL, config, error, sizeof error) !=
        HK_OK) {
        fail_msg("%s", error);
    }
    return config;
}

/* The text is refused with exactly this message. */
static void refused(const char *text, const char *message)
{
    char error[CONFIG_ERROR_MAX] = "";
    struct config *config = malloc(sizeof *config);
    assert_non_null(config);
    int result =
        config_parse(bytes_of(text, (uint32_t)strlen(text)), NULL, config, error, sizeof error);
    assert_string_equal(error, message);
    assert_int_equal(result, HK_ERR_INVALID);
    free(config);
}

static void test_defaults(void **state)
{
    (void)state;
    struct config *c = parse("[node]\nid = 3\n");
    assert_int_equal(c->id, 3);
    assert_int_equal(c->workers, 1);
    assert_int_equal(c->role, NODE_ROLE_BOTH);
    assert_string_equal(c->state_file, "horkos-3.state");
    assert_string_equal(c->log_file, "");
    assert_int_equal(c->log_level, LOG_INFO);
    assert_int_equal(c->io, LOOP_AUTO);
    assert_int_equal(c->spin_us, 0);
    assert_int_equal(c->leave_ms, 5000);
    assert_int_equal(c->handover_ms, 60000);
    assert_string_equal(c->cluster, "horkos");
    assert_int_not_equal(c->cluster_id, 0);
    assert_int_equal(c->lease_ms, 500);
    assert_int_equal(c->drift_ppm, 10000);
    assert_int_equal(c->nodes, nodeset_of(3));
    assert_string_equal(c->peer_listen.text, "");
    assert_int_equal(c->peer_window, 4u << 20);
    assert_int_equal(c->peer_queue_max, 256u << 20);
    assert_int_equal(c->listens_n, 1);
    assert_string_equal(c->listens[0].text, "127.0.0.1:6379");
    assert_int_equal(c->clients_max, 10000);
    assert_int_equal(c->clients_memory_max, 1u << 30);
    assert_int_equal(c->timeout_s, 0);
    assert_int_equal(c->bulk_bytes_max, 64u << 20);
    assert_int_equal(c->arguments_max, 1048576);
    assert_int_equal(c->query_bytes_max, 128u << 20);
    assert_int_equal(c->output_bytes_max, 256u << 20);
    assert_int_equal(c->slowlog_us, 10000);
    assert_int_equal(c->slowlog_max, 128);
    assert_int_equal(c->users_n, 0);
    assert_true(c->guarded);
    assert_true(c->spaces[0].exists);
    assert_string_equal(c->spaces[0].engine, "hermes");
    assert_false(c->spaces[0].async_reads);
    assert_false(c->spaces[0].ack_all);
    assert_int_equal(c->spaces[0].memory_max, 0);
    assert_false(c->spaces[1].exists);
    assert_int_equal(c->changed, 0);
    /* 1 % of the lease and a millisecond. */
    assert_int_equal(config_margin_us(c), 6000);
    free(c);
}

static void test_everything_can_be_said(void **state)
{
    (void)state;
    struct folder f;
    char text[1024], path[256], error[CONFIG_ERROR_MAX] = "";
    folder_make(&f);
    (void)snprintf(text, sizeof text,
                   "\xef\xbb\xbf# a comment\r\n"
                   "[node]\r\n"
                   "id=1 ; this one\n"
                   "  workers = 4\nrole = Memory\n"
                   "state_file = /var/lib/s\nlog_file = n.log\nlog_level = DEBUG\nio: epoll\n"
                   "peer_listen = [::]:7102\npeer_window = 1MiB\n"
                   "[cluster]\nname = prod-1\nkey_file = cluster.key\nlease_ms = 150\n"
                   "[peers]\n0 = a.example:7101\n1 = [2001:db8::1]:7102\n63 = 10.0.0.3:7103\n"
                   "[clients]\nlisten = 127.0.0.1:7001\nlisten = unix:/run/h.sock\n"
                   "slowlog_us = -1\ntimeout_s = 30\nquery_bytes_max = 64 mb\n"
                   "[user default]\npassword = one\npassword = two\n"
                   "[space 0]\nmemory_max = 1gb\n[space 5]\nasync_reads = yes\nack_all = yes");
    write_file(f.file, text, 0644);
    struct config *c = malloc(sizeof *c);
    assert_non_null(c);
    if (config_read(f.file, c, error, sizeof error) != HK_OK) {
        fail_msg("%s", error);
    }
    assert_int_equal(c->id, 1);
    assert_int_equal(c->workers, 4);
    assert_int_equal(c->role, NODE_ROLE_MEMORY);
    assert_string_equal(c->state_file, "/var/lib/s");
    folder_path(&f, "n.log", path);
    assert_string_equal(c->log_file, path);
    folder_path(&f, "cluster.key", path);
    assert_string_equal(c->key_file, path);
    assert_int_equal(c->key[31], 0x1f);
    assert_int_equal(c->log_level, LOG_DEBUG);
    assert_int_equal(c->io, LOOP_EPOLL);
    assert_string_equal(c->peer_listen.text, "[::]:7102");
    assert_int_equal(c->peer_window, 1u << 20);
    assert_int_equal(c->nodes, nodeset_of(0) | nodeset_of(1) | nodeset_of(63));
    assert_string_equal(c->peers[63].text, "10.0.0.3:7103");
    assert_int_equal(c->listens_n, 2);
    assert_string_equal(c->listens[1].text, "unix:/run/h.sock");
    assert_int_equal(c->slowlog_us, -1);
    assert_int_equal(c->query_bytes_max, 64u << 20);
    assert_int_equal(c->users_n, 1);
    assert_int_equal(c->users[0].passwords_n, 2);
    assert_int_equal(c->spaces[0].memory_max, 1u << 30);
    assert_true(c->spaces[5].exists && c->spaces[5].async_reads && c->spaces[5].ack_all);
    free(c);
    folder_remove(&f);
}

static void test_lines_that_are_wrong(void **state)
{
    (void)state;
    refused("[node]\nid = 1\n[nodes]\n",
            "configuration:3: unknown section [nodes]; there are [node], [cluster], [peers], "
            "[clients], [user NAME] and [space N]");
    refused("[node]\nid = 1\n[cluster]\nnome = x\n",
            "configuration:4: unknown option nome; [cluster] takes name, key_file, lease_ms, "
            "drift_ppm");
    refused("[node]\nid = 1\nlease_ms = 50\n",
            "configuration:3: option lease_ms belongs in [cluster], not here");
    refused("[clients]\nmaxclients = 50\n", "configuration:2: unknown option maxclients; here it "
                                            "is called clients_max, in [clients]");
    refused("id = 1\n[node]\n", "configuration:1: id stands before the first [section]");
    refused("[node]\nid\n", "configuration:2: this is neither a [section] nor name = value");
    refused("[node\nid = 1\n", "configuration:1: a section is written [name]: the ] is missing");
    refused("[node] id = 1\n", "configuration:1: nothing may follow a section's name in its line");
    refused("[node]\nid = 1\n\n[node]\n", "configuration:4: section [node] stands in line 1 "
                                          "already; put its options there");
    refused("[node]\nid = 1\nid = 2\n", "configuration:3: id stands in line 2 already");
    refused("[node]\nid =\n", "configuration:2: id has no value");
    refused("[node]\nid = 1\a\n", "configuration:2: a control character (byte 7 of the line)");
    refused("[space 16]\n", "configuration:1: [space 16]: a space is a number, 0 to 15");
    refused("[space 1]\n[space 1]\n", "configuration:2: section [space 1] stands in line 1 "
                                      "already; put its options there");
    refused("[space]\n", "configuration:1: [space]: a space is a number, 0 to 15");
    refused("[user]\n", "configuration:1: [user]: a user's name has no blanks: [user NAME]");
    refused("[user a b]\n",
            "configuration:1: [user a b]: a user's name has no blanks: [user NAME]");
    refused("[user ann]\npassword = x\n[user ann]\n",
            "configuration:3: user ann is described in line 1 already");
    refused("[node]\nid = 1\n[user ann]\n[space 0]\n",
            "configuration:3: user ann has no password; give a line password = ..., or remove the "
            "section");
    refused("[user nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn]\n",
            "configuration:1: a section's name has at most 49 bytes");
}

static void test_values_that_are_wrong(void **state)
{
    (void)state;
    refused("[node]\nid = 64\n", "configuration:2: id = 64: it takes 0 to 63");
    refused("[node]\nid = -1\n", "configuration:2: id = -1: it takes 0 to 63");
    refused("[node]\nid = 01\n", "configuration:2: id = 01: it takes 0 to 63");
    refused("[node]\nid = 1\nworkers = 0\n",
            "configuration:3: workers = 0: it takes 1 to 64 threads");
    refused("[node]\nlog_level = loud\n",
            "configuration:2: log_level = loud: it takes debug, info, warn or error");
    refused("[node]\nio = poll\n", "configuration:2: io = poll: it takes auto, io_uring or epoll");
    refused("[node]\nrole = storage\n",
            "configuration:2: role = storage: it takes both, compute or memory");
    refused("[cluster]\nlease_ms = 20\n",
            "configuration:2: lease_ms = 20: it takes 50 to 60000 milliseconds");
    refused("[cluster]\nlease_ms = 99999999999999999999999\n",
            "configuration:2: lease_ms = 99999999999999999999999: it takes 50 to 60000 "
            "milliseconds");
    refused("[cluster]\nname = a b\n",
            "configuration:2: name = a b: it takes a word of letters, digits, - and _");
    refused("[node]\npeer_window = 4 potatoes\n",
            "configuration:2: peer_window = 4 potatoes: it takes 512kb to 1gb");
    refused("[node]\npeer_window = 99999999999999999999gb\n",
            "configuration:2: peer_window = 99999999999999999999gb: it takes 512kb to 1gb");
    refused("[node]\npeer_listen = 7001\n",
            "configuration:2: peer_listen = 7001: the port is missing: host:port, [v6]:port or "
            "unix:/path");
    refused("[clients]\nprotected = maybe\n",
            "configuration:2: protected = maybe: it takes yes or no");
    refused("[clients]\nslowlog_us = -2\n",
            "configuration:2: slowlog_us = -2: it takes -1 to 9223372036854775807 microseconds");
    refused("[clients]\nlisten = 127.0.0.1:0\n",
            "configuration:2: listen = 127.0.0.1:0: the port must be 1 to 65535");
    refused("[clients]\nlisten = 127.0.0.1:1\nlisten = 127.0.0.1:1\n",
            "configuration:3: listen = 127.0.0.1:1 stands in line 2 already");
    refused("[clients]\nrequirepass = blake2b:12\n",
            "configuration:2: behind blake2b: stand the 64 hexadecimal digits of a password's "
            "BLAKE2b-256");
    refused("[clients]\nrequirepass = a\n[user default]\n",
            "configuration:3: user default is described in line 2 already");
    refused("[user default]\npassword = a\n[clients]\nrequirepass = a\n",
            "configuration:4: user default is described in line 1 already");
    refused("[space 0]\nengine = paxos\n",
            "configuration:2: engine = paxos: it takes hermes, galene, craq, zab, zeus or lotus");
    refused("[space 2]\nengine = galene\nmode = fast\n",
            "configuration:3: mode = fast: it takes cache, base or base-erew");
    refused("[space 2]\nengine = galene\nhot_epoch_ms = 9\n",
            "configuration:3: hot_epoch_ms = 9: it takes 10 to 3600000 milliseconds");
    refused("[space 2]\nengine = galene\nhot_sample = 0\n",
            "configuration:3: hot_sample = 0: it takes 1 to 65536 operations");
}

/* inih would cut such a line in silence. */
static void test_long_line(void **state)
{
    (void)state;
    char text[400] = "[node]\nid = 1\nstate_file = ";
    char path[256];
    size_t n = strlen(text);
    memset(text + n, 'p', 300);
    text[n + 300] = '\n';
    refused(text, "configuration:3: a line has at most 197 bytes without blanks around it");

    /* The longest that fits arrives whole; a comment may be as long as it likes. */
    text[n + 197 - strlen("state_file = ")] = '\0';
    struct config *c = parse(text);
    memset(path, 'p', sizeof path);
    path[197 - strlen("state_file = ")] = '\0';
    assert_string_equal(c->state_file, path);
    free(c);
    (void)snprintf(text, sizeof text, "#%0300d\n[node]\nid = 1\n[space 0]\nx = 1\n", 0);
    refused(text, "configuration:5: unknown option x; [space N] takes engine, async_reads, "
                  "ack_all, memory_max, keys_expected, mode, cache_keys, hot_epoch_ms, "
                  "hot_sample, misses_max, degree, quantum_us, quantum_most_us, pingpong_us, "
                  "backoff_us, forget_ms, repair_ms, moving_max, cc, txn_lease_ms, one_trip, "
                  "batch_inside, batch_across, hints_max, txns_max, locks_max, txn_locks_max, "
                  "near_max");
}

static void test_too_many(void **state)
{
    (void)state;
    char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text, "[clients]\n");
    for (uint32_t i = 0; i <= CONFIG_LISTENS_MAX; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "listen = 127.0.0.1:%u\n", 7000 + i);
    }
    refused(text, "configuration:10: more than 8 lines of listen");
    n = (size_t)snprintf(text, sizeof text, "[user u]\n");
    for (uint32_t i = 0; i <= CONFIG_PASSWORDS_MAX; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "password = %u\n", i);
    }
    refused(text, "configuration:10: more than 8 passwords of one user");
    n = 0;
    for (uint32_t i = 0; i <= CONFIG_USERS_MAX; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "[user u%u]\npassword = 1\n", i);
    }
    refused(text, "configuration:129: more than 64 users");
}

static void test_cluster_that_cannot_be(void **state)
{
    (void)state;
    refused("[cluster]\n[peers]\n0 = a:1\n1 = b:1\n0 = c:1\n",
            "configuration:5: node 0 is in line 3 already; every node has a number of its own");
    refused("[peers]\n0 = a:1\n1 = a:1\n",
            "configuration:3: a:1 is the address of node 0 in line 2 already; every node has its "
            "own");
    refused("[peers]\n64 = a:1\n",
            "configuration:2: [peers] takes lines like 0 = host:port, the node's number being 0 to "
            "63; 64 is none");
    refused("[peers]\n1 = a\n", "configuration:2: 1 = a: the port is missing: host:port, [v6]:port "
                                "or unix:/path");
    refused("[peers]\n1 = unix:/a\n",
            "configuration:2: 1 = unix:/a: peers are reached by host:port");
    refused("[node]\nworkers = 1\n",
            "configuration:1: [node] has no id; give the number of this node, 0 to 63, as it "
            "stands in [peers]");
    refused("", "configuration: [node] has no id; give the number of this node, 0 to 63, as it "
                "stands in [peers]");
    refused("[node]\nid = 2\n[peers]\n0 = a:1\n",
            "configuration:2: id = 2 is not in [peers]; all nodes of the cluster stand there, this "
            "one too: 2 = host:port");
    refused("[node]\nid = 0\n[cluster]\n[peers]\n0 = a:1\n1 = b:1\n",
            "configuration:3: there are other nodes in [peers], but no key_file in [cluster]; make "
            "a key with: (umask 077; openssl rand -hex 32 > cluster.key), and give the same to all "
            "nodes");
    refused("[node]\nid = 0\npeer_listen = unix:/x\n[peers]\n0 = a:1\n",
            "configuration:3: peer_listen = unix:/x: peers are reached by host:port");
    refused("[node]\nid = 0\n[clients]\nlisten = 127.0.0.1:1\n[peers]\n0 = 127.0.0.1:1\n1 = b:1\n",
            "configuration:4: listen = 127.0.0.1:1 is where this node listens for peers (line 6); "
            "clients need another port");
    refused("[node]\nid = 0\n[cluster]\nlease_ms = 50\ndrift_ppm = 250000\n",
            "configuration:4: lease_ms = 50 is too short for drift_ppm = 250000: 13500 us of it "
            "would be margin, more than a quarter; give a longer lease or a smaller drift");
    refused("[node]\nid = 0\n[clients]\nquery_bytes_max = 1mb\n",
            "configuration:4: query_bytes_max = 1048576 is less than bulk_bytes_max = 67108864: a "
            "command must have room for its largest argument");
    /* One node with a [peers] of its own needs no key. */
    free(parse("[node]\nid = 7\n[peers]\n7 = 127.0.0.1:1\n"));
}

#define OPEN_DOOR                                                                                  \
    "clients of other machines could connect, and user default has no password: give requirepass " \
    "or a section [user default], listen on 127.0.0.1 only, or say protected = no in [clients]"

static void test_protected(void **state)
{
    (void)state;
    refused("[node]\nid = 0\n[clients]\nlisten = 0.0.0.0:1\n", "configuration:4: " OPEN_DOOR);
    refused("[node]\nid = 0\n[clients]\nlisten = db.example:1\n", "configuration:4: " OPEN_DOOR);
    refused("[node]\nid = 0\n[clients]\nlisten = [::]:1\n[user ann]\npassword = x\n",
            "configuration:4: " OPEN_DOOR);
    free(parse("[node]\nid = 0\n[clients]\nlisten = 0.0.0.0:1\nprotected = no\n"));
    free(parse("[node]\nid = 0\n[clients]\nlisten = 0.0.0.0:1\nrequirepass = x\n"));
    free(parse("[node]\nid = 0\n[clients]\nlisten = [::1]:1\nlisten = localhost:1\n"
               "listen = 127.8.9.1:1\nlisten = unix:/x\n"));
}

static void test_files_that_are_wrong(void **state)
{
    (void)state;
    struct folder f;
    char error[CONFIG_ERROR_MAX] = "", expected[CONFIG_ERROR_MAX], key[256];
    struct config *c = malloc(sizeof *c);
    assert_non_null(c);
    folder_make(&f);
    folder_path(&f, "cluster.key", key);

    assert_int_equal(config_read(f.file, c, error, sizeof error), HK_ERR_IO);
    (void)snprintf(expected, sizeof expected, "%s: cannot be read: No such file or directory",
                   f.file);
    assert_string_equal(error, expected);
    assert_int_equal(config_read(f.at, c, error, sizeof error), HK_ERR_IO);
    (void)snprintf(expected, sizeof expected, "%s: cannot be read: Is a directory", f.at);
    assert_string_equal(error, expected);

    write_file(f.file, "[node]\nid = 1\n[cluster]\nkey_file = cluster.key\n", 0644);
    assert_int_equal(config_read(f.file, c, error, sizeof error), HK_OK);
    assert_int_equal(chmod(key, 0640), 0);
    assert_int_equal(config_read(f.file, c, error, sizeof error), HK_ERR_INVALID);
    (void)snprintf(expected, sizeof expected,
                   "%s:4: key_file %s may be read by others (mode 640); say: chmod 600 %s", f.file,
                   key, key);
    assert_string_equal(error, expected);

    static const char *const wrong[] = {"", "00", "zz" KEY_TEXT, KEY_TEXT KEY_TEXT,
                                        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1"
                                        "c1d1e1g\n"};
    (void)snprintf(expected, sizeof expected,
                   "%s:4: key_file %s must hold 64 hexadecimal digits and nothing else; make one "
                   "with: openssl rand -hex 32",
                   f.file, key);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_file(key, wrong[i], 0600);
        assert_int_equal(config_read(f.file, c, error, sizeof error), HK_ERR_INVALID);
        assert_string_equal(error, expected);
    }
    assert_int_equal(unlink(key), 0);
    assert_int_equal(config_read(f.file, c, error, sizeof error), HK_ERR_INVALID);
    (void)snprintf(expected, sizeof expected,
                   "%s:4: key_file %s cannot be read: No such file or directory", f.file, key);
    assert_string_equal(error, expected);
    assert_int_equal(mkdir(key, 0700), 0);
    assert_int_equal(config_read(f.file, c, error, sizeof error), HK_ERR_INVALID);
    (void)snprintf(expected, sizeof expected, "%s:4: key_file %s is no file", f.file, key);
    assert_string_equal(error, expected);
    assert_int_equal(rmdir(key), 0);
    free(c);
    folder_remove(&f);
}

/* ---- CONFIG GET and SET ---- */

struct got {
    char text[8192];
    size_t n;
};

static void collect(void *context, struct bytes name, struct bytes value)
{
    struct got *got = context;
    got->n +=
        (size_t)snprintf(got->text + got->n, sizeof got->text - got->n, "%.*s=%.*s\n", (int)name.n,
                         (const char *)name.at, (int)value.n, (const char *)value.at);
    assert_true(got->n < sizeof got->text);
}

static void assert_get(const struct config *c, const char *pattern, const char *expected)
{
    struct got got = {.n = 0};
    uint32_t lines = 0;
    uint32_t n = config_get(c, bytes_of(pattern, (uint32_t)strlen(pattern)), collect, &got);
    assert_string_equal(got.text, expected);
    for (const char *p = got.text; *p != '\0'; p++) {
        lines += *p == '\n';
    }
    assert_int_equal(n, lines);
}

static const char *set(struct config *c, const char *name, const char *value)
{
    return config_set(c, bytes_of(name, (uint32_t)strlen(name)),
                      bytes_of(value, (uint32_t)strlen(value)));
}

static void test_get(void **state)
{
    (void)state;
    struct config *c = parse("[node]\nid = 1\n[clients]\nlisten = 127.0.0.1:1\n"
                             "listen = 127.0.0.1:2\n[peers]\n1 = 127.0.0.1:3\n"
                             "[space 0]\nmemory_max = 1kb\n[space 2]\nack_all = yes\n");
    assert_get(c, "save", "save=\n");
    assert_get(c, "appendonly", "appendonly=no\n");
    assert_get(c, "databases", "databases=16\n");
    assert_get(c, "MaxClients", "maxclients=10000\n");
    assert_get(c, "maxmemory", "maxmemory=1024\n");
    assert_get(c, "proto-max-bulk-len", "proto-max-bulk-len=67108864\n");
    assert_get(c, "slowlog-*", "slowlog-log-slower-than=10000\nslowlog-max-len=128\n");
    assert_get(c, "loglevel", "loglevel=info\n");
    assert_get(c, "timeout", "timeout=0\n");
    assert_get(c, "requirepass", "requirepass=\n");
    assert_get(c, "clients.listen", "clients.listen=127.0.0.1:1 127.0.0.1:2\n");
    assert_get(c, "peers.*", "peers.1=127.0.0.1:3\n");
    assert_get(c, "space.?.ack_all", "space.0.ack_all=no\nspace.2.ack_all=yes\n");
    assert_get(c, "node.i[do]", "node.id=1\nnode.io=auto\n");
    assert_get(c, "cluster.*",
               "cluster.name=horkos\ncluster.key_file=\ncluster.lease_ms=500\n"
               "cluster.drift_ppm=10000\n");
    assert_get(c, "", "");
    assert_get(c, "nothing", "");
    char stars[RESP_GLOB_MAX + 2];
    memset(stars, '*', sizeof stars);
    stars[RESP_GLOB_MAX + 1] = '\0';
    assert_get(c, stars, "");
    struct got all = {.n = 0};
    assert_true(config_get(c, bytes_of("*", 1), collect, &all) > 50);
    assert_null(strstr(all.text, "password"));
    free(c);
}

/* What one engine alone understands, wherever the line with the engine stands. */
static void test_options_of_an_engine(void **state)
{
    (void)state;
    struct config *c = parse("[node]\nid = 1\n[space 2]\nmode = base-erew\ncache_keys = 1000\n"
                             "hot_epoch_ms = 200\nhot_sample = 4\nmisses_max = 32\n"
                             "engine = galene\n[space 3]\nengine = galene\n[space 4]\n");
    const struct config_space *space = &c->spaces[2];
    assert_string_equal(space->engine, "galene");
    assert_int_equal(space->mode, CONFIG_BASE_EREW);
    assert_int_equal(space->cache_keys, 1000);
    assert_int_equal(space->hot_epoch_ms, 200);
    assert_int_equal(space->hot_sample, 4);
    assert_int_equal(space->misses_max, 32);
    space = &c->spaces[3];
    assert_int_equal(space->mode, CONFIG_CACHE);
    assert_int_equal(space->cache_keys, 0);
    assert_int_equal(space->hot_epoch_ms, 1000);
    assert_int_equal(space->hot_sample, 16);
    assert_int_equal(space->misses_max, 256);
    assert_get(c, "space.?.hot_sample",
               "space.2.hot_sample=4\nspace.3.hot_sample=16\nspace.4.hot_sample=16\n");
    /* Spaces of other engines have no such option. */
    assert_get(c, "space.?.mode", "space.2.mode=base-erew\nspace.3.mode=cache\n");
    assert_get(c, "space.?.ack_all",
               "space.2.ack_all=no\nspace.3.ack_all=no\nspace.4.ack_all=no\n");
    free(c);
    refused("[node]\nid = 1\n[space 2]\nengine = galene\nmode = base\n[space 0]\nmode = base\n",
            "configuration:7: mode is for engine = galene; [space 0] has engine = hermes");
    refused("[node]\nid = 1\n[space 1]\ncache_keys = 5\nengine = zab\n",
            "configuration:4: cache_keys is for engine = galene; [space 1] has engine = zab");
    refused("[node]\nid = 1\nmode = base\n",
            "configuration:3: option mode belongs in [space N], not here");
}

static void test_options_of_zeus(void **state)
{
    (void)state;
    struct config *c = parse("[node]\nid = 1\n[space 1]\nengine = zeus\ndegree = 2\n"
                             "quantum_us = 100\nquantum_most_us = 100\npingpong_us = 5000\n"
                             "backoff_us = 700\nforget_ms = 20\nrepair_ms = 50\n"
                             "moving_max = 100\n[space 2]\nengine = zeus\n");
    const struct config_space *space = &c->spaces[1];
    assert_string_equal(space->engine, "zeus");
    assert_int_equal(space->degree, 2);
    assert_int_equal(space->quantum_us, 100);
    assert_int_equal(space->quantum_most_us, 100);
    assert_int_equal(space->pingpong_us, 5000);
    assert_int_equal(space->backoff_us, 700);
    assert_int_equal(space->forget_ms, 20);
    assert_int_equal(space->repair_ms, 50);
    assert_int_equal(space->moving_max, 100);
    space = &c->spaces[2];
    assert_int_equal(space->degree, 0);
    assert_int_equal(space->quantum_us, 200);
    assert_int_equal(space->quantum_most_us, 3200);
    assert_int_equal(space->backoff_us, 0);
    free(c);
    refused("[node]\nid = 1\n[space 1]\nengine = zeus\nquantum_us = 5000\n",
            "configuration:5: quantum_us = 5000 is more than quantum_most_us = 3200");
    refused("[node]\nid = 1\n[space 1]\nengine = zeus\nquantum_us = 20\nquantum_most_us = 5\n",
            "configuration:6: quantum_us = 20 is more than quantum_most_us = 5");
    refused("[node]\nid = 1\n[space 1]\ndegree = 2\n",
            "configuration:4: degree is for engine = zeus; [space 1] has engine = hermes");
}

static void test_options_of_lotus(void **state)
{
    (void)state;
    struct config *c = parse("[node]\nid = 1\n[space 3]\nengine = lotus\ncc = no_wait\n"
                             "txn_lease_ms = 700\none_trip = no\nbatch_inside = no\n"
                             "batch_across = yes\nhints_max = 0\ntxns_max = 100\n"
                             "locks_max = 5000\ntxn_locks_max = 70\nforget_ms = 20\n"
                             "near_max = 2mb\n"
                             "[space 4]\nengine = lotus\n");
    const struct config_space *space = &c->spaces[3];
    assert_string_equal(space->engine, "lotus");
    assert_int_equal(space->cc, LOCK_NO_WAIT);
    assert_int_equal(space->txn_lease_ms, 700);
    assert_false(space->one_trip || space->batch_inside);
    assert_true(space->batch_across);
    assert_int_equal(space->hints_max, 0);
    assert_int_equal(space->txns_max, 100);
    assert_int_equal(space->locks_max, 5000);
    assert_int_equal(space->txn_locks_max, 70);
    assert_int_equal(space->forget_ms, 20);
    assert_int_equal(space->near_max, 2097152);
    space = &c->spaces[4];
    assert_int_equal(space->cc, LOCK_WOUND_WAIT);
    assert_int_equal(space->txn_lease_ms, 5000);
    assert_true(space->one_trip && space->batch_inside);
    assert_false(space->batch_across);
    assert_int_equal(space->hints_max, 65536);
    assert_int_equal(space->near_max, 0);
    assert_int_equal(space->forget_ms, 10000);
    free(c);
    refused("[node]\nid = 1\n[space 3]\nengine = lotus\ncc = wait\n",
            "configuration:5: cc = wait: it takes no_wait, wait_die or wound_wait");
    refused("[node]\nid = 1\n[space 3]\nengine = lotus\ndegree = 2\n",
            "configuration:5: degree is for engine = zeus; [space 3] has engine = lotus");
    refused("[node]\nid = 1\n[space 3]\ncc = no_wait\n",
            "configuration:4: cc is for engine = lotus; [space 3] has engine = hermes");
    refused("[node]\nid = 1\n[space 3]\nforget_ms = 20\n",
            "configuration:4: forget_ms is for engine = zeus or lotus; [space 3] has engine = "
            "hermes");
}

static void test_set(void **state)
{
    (void)state;
    struct config *c = parse("[node]\nid = 1\n");
    assert_null(set(c, "maxclients", "77"));
    assert_int_equal(c->clients_max, 77);
    assert_null(set(c, "clients.clients_max", "78"));
    assert_get(c, "*clients_max", "clients.clients_max=78\n");
    assert_null(set(c, "LOGLEVEL", "warn"));
    assert_int_equal(c->log_level, LOG_WARN);
    assert_null(set(c, "slowlog-log-slower-than", "-1"));
    assert_int_equal(c->slowlog_us, -1);
    assert_null(set(c, "client-query-buffer-limit", "256mb"));
    assert_null(set(c, "proto-max-bulk-len", "1mb"));
    assert_int_equal(c->bulk_bytes_max, 1u << 20);

    struct config before = *c;
    assert_string_equal(set(c, "maxclients", "0"),
                        "clients_max = 0: it takes 1 to 1000000 clients");
    assert_string_equal(set(c, "no-such", "1"),
                        "Unknown option or number of arguments for CONFIG SET - 'no-such'");
    assert_string_equal(set(c, "", "1"),
                        "Unknown option or number of arguments for CONFIG SET - ''");
    assert_string_equal(set(c, "node.id", "1"),
                        "node.id cannot be changed while the node runs; change the file and start "
                        "the node again");
    assert_string_equal(set(c, "save", ""),
                        "save cannot be changed while the node runs; change the file and start the "
                        "node again");
    assert_string_equal(set(c, "space.0.memory_max", "1"),
                        "space.0.memory_max cannot be changed while the node runs; change the file "
                        "and start the node again");
    assert_string_equal(set(c, "clients.query_bytes_max", "64kb"),
                        "query_bytes_max = 65536 is less than bulk_bytes_max = 1048576: a command "
                        "must have room for its largest argument");
    assert_string_equal(config_set(c, bytes_of("timeout", 7), bytes_of("1\0002", 3)),
                        "the value is too long or holds a NUL byte");
    assert_string_equal(config_set(c, bytes_of("time\0out", 8), bytes_of("1", 1)),
                        "Unknown option or number of arguments for CONFIG SET - '...'");
    assert_memory_equal(&before, c, sizeof before);
    free(c);
}

static bool auth(const struct config *c, const char *user, const char *secret)
{
    return config_auth(c, bytes_of(user, (uint32_t)strlen(user)),
                       bytes_of(secret, (uint32_t)strlen(secret)));
}

static void test_users(void **state)
{
    (void)state;
    /* The hash is that of "three". */
    struct config *c = parse("[node]\nid = 1\n[clients]\nrequirepass = one\n[user ann]\n"
                             "password = two\npassword = blake2b:"
                             "484bccf6a66fd4667832ea4ac69026cd7e6ff31e4b741d0a1bdc740afca4416c\n");
    assert_true(config_auth_required(c));
    assert_true(auth(c, "", "one"));
    assert_true(auth(c, "default", "one"));
    assert_false(auth(c, "", "two"));
    assert_false(auth(c, "", ""));
    assert_true(auth(c, "ann", "two"));
    assert_true(auth(c, "ann", "three"));
    assert_false(auth(c, "ann", "one"));
    assert_false(auth(c, "an", "two"));
    assert_false(auth(c, "bob", "two"));

    /* A hash that was read from one configuration is a password of another. */
    struct got got = {.n = 0};
    (void)config_get(c, bytes_of("requirepass", 11), collect, &got);
    got.text[got.n - 1] = '\0';
    assert_null(set(c, "requirepass", "four"));
    assert_false(auth(c, "", "one"));
    assert_true(auth(c, "", "four"));
    assert_null(set(c, "requirepass", got.text + strlen("requirepass=")));
    assert_true(auth(c, "", "one"));
    assert_null(strstr(got.text, "one"));

    assert_null(set(c, "requirepass", ""));
    assert_false(config_auth_required(c));
    assert_true(auth(c, "", "whatever"));
    assert_true(auth(c, "ann", "two"));
    assert_false(auth(c, "ann", "whatever"));
    free(c);

    c = parse("[node]\nid = 1\n[clients]\nlisten = 0.0.0.0:1\nrequirepass = x\n");
    assert_string_equal(set(c, "requirepass", ""), OPEN_DOOR);
    assert_true(auth(c, "", "x"));
    assert_false(auth(c, "", "y"));
    free(c);
}

/* ---- CONFIG REWRITE ---- */

static void rewritten(const char *before, const char *const (*sets)[2], const char *expected)
{
    struct folder f;
    char error[CONFIG_ERROR_MAX] = "";
    folder_make(&f);
    write_file(f.file, before, 0640);
    struct config *c = malloc(sizeof *c), *again = malloc(sizeof *again);
    assert_non_null(c);
    assert_non_null(again);
    assert_int_equal(config_read(f.file, c, error, sizeof error), HK_OK);
    for (; (*sets)[0] != NULL; sets++) {
        assert_null(set(c, (*sets)[0], (*sets)[1]));
    }
    assert_null(config_rewrite(c));
    char *after = read_file(f.file);
    if (expected != NULL) {
        assert_string_equal(after, expected);
    }
    free(after);
    struct stat about;
    assert_int_equal(stat(f.file, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);

    /* What was written says what was set. */
    if (config_read(f.file, again, error, sizeof error) != HK_OK) {
        fail_msg("%s", error);
    }
    struct got a = {.n = 0}, b = {.n = 0};
    (void)config_get(c, bytes_of("*", 1), collect, &a);
    (void)config_get(again, bytes_of("*", 1), collect, &b);
    assert_string_equal(a.text, b.text);
    free(c);
    free(again);
    folder_remove(&f);
}

static void test_rewrite(void **state)
{
    (void)state;
    static const char *const none[][2] = {{NULL, NULL}};
    rewritten("# nothing changed\n\n[node]\nid = 1\n", none,
              "# nothing changed\n\n[node]\nid = 1\n");

    static const char *const in_place[][2] = {
        {"maxclients", "5"}, {"loglevel", "error"}, {NULL, NULL}};
    rewritten("# top\n[node]\n  log_level: info   ; loud\nid = 1\n\n# clients\n[clients]\n"
              "#clients_max = 3\nclients_max=4\n[space 0]\n",
              in_place,
              "# top\n[node]\n  log_level = error   ; loud\nid = 1\n\n# clients\n[clients]\n"
              "#clients_max = 3\nclients_max = 5\n[space 0]\n");

    static const char *const added[][2] = {
        {"slowlog-max-len", "5"}, {"node.spin_us", "9"}, {"timeout", "60"}, {NULL, NULL}};
    rewritten("[node]\nid = 1\n\n# the end of node\n\n[space 0]\nmemory_max = 1gb", added,
              "[node]\nid = 1\nspin_us = 9\n\n# the end of node\n\n[space 0]\nmemory_max = 1gb\n\n"
              "[clients]\ntimeout_s = 60\nslowlog_max = 5\n");
}

static void test_rewrite_password(void **state)
{
    (void)state;
    static const char *const give[][2] = {
        {"requirepass", "blake2b:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
        {NULL, NULL}};
    rewritten("[node]\nid = 1\n[user default] ; us\n# both\npassword = a\npassword = b\n"
              "[user ann]\npassword = c\n",
              give,
              "[node]\nid = 1\n# both\n[user ann]\npassword = c\n\n[clients]\nrequirepass = "
              "blake2b:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n");

    static const char *const take[][2] = {{"requirepass", ""}, {NULL, NULL}};
    rewritten("[node]\nid = 1\n[clients]\nrequirepass = x\ntimeout_s = 1\n", take,
              "[node]\nid = 1\n[clients]\ntimeout_s = 1\n");
    rewritten("[clients]\n[user default]\npassword = x\n[node]\nid = 1\n", take,
              "[clients]\n[node]\nid = 1\n");
}

/* Every option that may change goes through SET, REWRITE and a new start. */
/* Sections are the same with blanks inside their brackets. */
static void test_rewrite_blanks(void **state)
{
    (void)state;
    static const char *const sets[][2] = {{"timeout", "7"}, {"requirepass", "x"}, {NULL, NULL}};
    rewritten(
        "[node]\nid = 1\n[clients\t ]\ntimeout_s = 5\n[user \t default]\npassword = y\n"
        "[space  0]\n",
        sets,
        "[node]\nid = 1\n[clients\t ]\ntimeout_s = 7\nrequirepass = "
        "blake2b:d161d71145abeec5ef15abcf0459cec60a27321e2f0ac0ef7ace5254f5944476\n[space  0]\n");
}

static void test_rewrite_all(void **state)
{
    (void)state;
    static const char *const all[][2] = {{"node.log_level", "debug"},
                                         {"node.spin_us", "1"},
                                         {"node.leave_ms", "2"},
                                         {"node.handover_ms", "3"},
                                         {"clients.requirepass", "s"},
                                         {"clients.clients_max", "3"},
                                         {"clients.clients_memory_max", "4mb"},
                                         {"clients.timeout_s", "5"},
                                         {"clients.bulk_bytes_max", "6kb"},
                                         {"clients.arguments_max", "700"},
                                         {"clients.query_bytes_max", "800kb"},
                                         {"clients.output_bytes_max", "900kb"},
                                         {"clients.slowlog_us", "-1"},
                                         {"clients.slowlog_max", "11"},
                                         {NULL, NULL}};
    rewritten("[node]\nid = 1\n", all, NULL);

    struct config *c = parse("[node]\nid = 1\n");
    assert_string_equal(config_rewrite(c), "The server is running without a config file");
    for (uint32_t i = 0; all[i][0] != NULL; i++) {
        assert_null(set(c, all[i][0], all[i][1]));
    }
    /* One bit for each: the list above leaves none out. */
    uint32_t runtime = 0;
    char *page = read_file("docs/CONFIG.md");
    for (const char *p = page; (p = strstr(p, " | yes | ")) != NULL; p++) {
        runtime++;
    }
    assert_int_equal(__builtin_popcountll(c->changed), runtime);
    free(page);
    free(c);
}

/* ---- The documentation ---- */

static void append_line(void *context, const char *text)
{
    char *to = context;
    size_t n = strlen(to);
    (void)snprintf(to + n, (1 << 16) - n, "%s\n", text);
}

static void test_document(void **state)
{
    (void)state;
    static const char begin[] = "<!-- begin of the table of options -->\n\n";
    static const char end[] = "<!-- end of the table of options -->";
    char *page = read_file("docs/CONFIG.md");
    char *from = strstr(page, begin);
    char *to = strstr(page, end);
    char *generated = calloc(1, 1 << 16);
    assert_non_null(generated);
    assert_true(from != NULL && to != NULL);
    *to = '\0';
    config_document(append_line, generated);
    assert_string_equal(from + strlen(begin), generated);
    free(generated);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything_can_be_said),
        cmocka_unit_test(test_lines_that_are_wrong),
        cmocka_unit_test(test_values_that_are_wrong),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_cluster_that_cannot_be),
        cmocka_unit_test(test_protected),
        cmocka_unit_test(test_files_that_are_wrong),
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_options_of_an_engine),
        cmocka_unit_test(test_options_of_zeus),
        cmocka_unit_test(test_options_of_lotus),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_rewrite),
        cmocka_unit_test(test_rewrite_password),
        cmocka_unit_test(test_rewrite_blanks),
        cmocka_unit_test(test_rewrite_all),
        cmocka_unit_test(test_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
