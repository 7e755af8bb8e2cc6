#include "support/embed_cluster.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "embed/internal.h"
#include "server/internal.h"
#include "support/net_free_ports.h"

/* What the fields of struct hk_config cannot say. */
static void write_text(const struct embed_cluster *c, uint32_t node, char *text, size_t size)
{
    int n = snprintf(text, size,
                     "[node]\nid = %u\nstate_file = %s/horkos-%u.state\nlog_level = warn\n"
                     "workers = %u\nleave_ms = 2000\n[cluster]\nlease_ms = 2000\n"
                     "[clients]\nlisten = unix:/none\n[space 0]\nengine = %s\n",
                     node, c->folder, node, c->workers, c->engine);
    if (c->nodes_n > 1) {
        n += snprintf(text + n, size - (size_t)n, "[peers]\n");
        for (uint32_t i = 0; i < c->nodes_n; i++) {
            n += snprintf(text + n, size - (size_t)n, "%u = %s\n", i, c->addresses[i]);
        }
    }
    assert_true((size_t)n < size);
}

void embed_cluster_start(struct embed_cluster *c, uint32_t node)
{
    static const uint8_t key[HK_KEY_BYTES] = {1, 2, 3};
    char error[512];
    char text[2048];
    struct hk_config config = {.id = node,
                               .peers = c->peers,
                               .peers_n = c->nodes_n > 1 ? c->nodes_n : 0,
                               .key = key,
                               .dir = c->folder,
                               .workers = c->workers,
                               .leave_ms = 2000,
                               .lease_ms = 2000,
                               .error = error,
                               .error_bytes = sizeof error};
    if (c->engine != NULL) {
        write_text(c, node, text, sizeof text);
        config = (struct hk_config){
            .text = text, .key = key, .error = error, .error_bytes = sizeof error};
    }
    int err = hk_open(&config, &c->nodes[node]);
    if (err != HK_OK) {
        fail_msg("node %u: %s: %s", node, hk_err_name(err), error);
    }
    assert_string_equal(error, "");
}

void embed_cluster_open(struct embed_cluster *c, uint32_t nodes, uint32_t workers)
{
    embed_cluster_open_engine(c, nodes, workers, NULL);
}

void embed_cluster_open_engine(struct embed_cluster *c, uint32_t nodes, uint32_t workers,
                               const char *engine)
{
    memset(c, 0, sizeof *c);
    c->engine = engine;
    snprintf(c->folder, sizeof c->folder, "/tmp/horkos-embed-XXXXXX");
    assert_non_null(mkdtemp(c->folder));
    c->nodes_n = nodes;
    c->workers = workers;
    uint16_t ports[FREE_PORTS_MAX];
    free_ports(nodes, ports);
    for (uint32_t i = 0; i < nodes; i++) {
        snprintf(c->addresses[i], sizeof c->addresses[i], "127.0.0.1:%u", ports[i]);
        c->peers[i] = (struct hk_peer){.id = i, .address = c->addresses[i]};
    }
    for (uint32_t i = 0; i < nodes; i++) {
        embed_cluster_start(c, i);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        assert_int_equal(hk_wait_serving(c->nodes[i], EMBED_BOUND_MS), HK_OK);
    }
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    (void)closedir(dir);
    (void)rmdir(folder);
}

void embed_cluster_close(struct embed_cluster *c)
{
    for (uint32_t i = 0; i < c->nodes_n; i++) {
        hk_close_now(c->nodes[i]);
        c->nodes[i] = NULL;
    }
    remove_folder(c->folder);
}

void embed_cluster_wipe(struct embed_cluster *c, uint32_t node)
{
    struct server *s = c->nodes[node]->server;
    /* As control_round does when a poll says so. */
    atomic_store_explicit(&s->meeting, true, memory_order_release);
    server_wake_all(s);
}

uint32_t embed_cluster_wipes(struct embed_cluster *c, uint32_t node)
{
    return atomic_load(&c->nodes[node]->server->wipes);
}

struct hk_session *embed_cluster_session(struct embed_cluster *c, uint32_t node)
{
    struct hk_session *s = NULL;
    assert_int_equal(hk_session_open(c->nodes[node], NULL, &s), HK_OK);
    return s;
}
