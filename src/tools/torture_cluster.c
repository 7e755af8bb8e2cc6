#include "tools/torture_cluster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/err.h"
#include "tools/dev_folder.h"
#include "tools/node_report.h"

#define GONE_US 5000000u  /* a killed process must be gone by then */
#define PROBE_US 2000000u /* a question that is not answered by then is asked anew */
#define TAIL_LINES 10u
#define HANDOVER_MS 5000u /* much less than a leave may take */
#define REPAIR_MS 100u /* where objects have owners: nothing befalls the nodes before it is done */
#define FORGET_MS 700u /* ... and deleted keys are forgotten while others come back */

/* ---- Files ---- */

static bool make_folder(struct torture_cluster *c)
{
    const char *temporary = getenv("TMPDIR");
    if (c->options->dir[0] != '\0') {
        memcpy(c->dir, c->options->dir, sizeof c->dir);
        return dev_folder_make(c->dir) && dev_folder_clear(c->dir);
    }
    snprintf(c->dir, sizeof c->dir, "%.300s/horkos-torture-XXXXXX",
             temporary == NULL || temporary[0] != '/' ? "/tmp" : temporary);
    if (mkdtemp(c->dir) == NULL) {
        fprintf(stderr, "horkos torture: %s: %s\n", c->dir, strerror(errno));
        return false;
    }
    c->made_dir = true;
    return true;
}

static uint16_t port_of(const struct torture_cluster *c, uint32_t node, bool peer)
{
    if (c->net->separate) {
        return peer ? TORTURE_PORT_PEERS : TORTURE_PORT_CLIENTS;
    }
    return peer ? c->ports.peer[node].port : c->ports.client[node].port;
}

static void write_space(const struct torture_cluster *c, FILE *to)
{
    enum torture_engine engine = c->options->engine;
    fprintf(to, "\n[space 0]\nengine = %s\n", torture_engine_names[engine]);
    switch (engine) {
    case TORTURE_GALENE:
        fprintf(to, "cache_keys = %u\nhot_epoch_ms = %u\nhot_sample = 1\n", c->plan->cache_keys,
                c->plan->epoch_ms);
        break;
    case TORTURE_ZEUS:
        fprintf(to, "repair_ms = %u\nforget_ms = %u\n", REPAIR_MS, FORGET_MS);
        break;
    case TORTURE_LOTUS:
        fprintf(to, "cc = %s\n", c->plan->cc);
        break;
    case TORTURE_HERMES:
    case TORTURE_ENGINES:
        fprintf(to, "ack_all = %s\nasync_reads = %s\n", c->plan->ack_all ? "yes" : "no",
                c->plan->async_reads ? "yes" : "no");
        break;
    }
}

static bool write_config(const struct torture_cluster *c, uint32_t node)
{
    char path[DEV_PATH_MAX];
    char host[16];
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (to == NULL) {
        return false;
    }
    torture_net_host(c->net, node, host);
    fprintf(to, "[node]\nid = %u\nworkers = %u\nstate_file = node-%u.state\n", node,
            c->plan->workers, node);
    fprintf(to, "role = %s\n", nodeset_has(c->plan->compute, (uint8_t)node) ? "compute" : "both");
    fprintf(to, "handover_ms = %u\n\n", HANDOVER_MS);
    fprintf(to, "[cluster]\nname = torture\nkey_file = cluster.key\nlease_ms = %u\n\n",
            c->options->lease_ms);
    fprintf(to, "[clients]\nlisten = %s:%u\nprotected = no\n\n[peers]\n", host,
            (unsigned)port_of(c, node, false));
    for (uint32_t peer = 1; peer <= c->options->nodes; peer++) {
        torture_net_host(c->net, peer, host);
        fprintf(to, "%u = %s:%u\n", peer, host, (unsigned)port_of(c, peer, true));
    }
    write_space(c, to);
    bool good = fclose(to) == 0;
    dev_node_path(c->dir, node, "conf", path);
    good = good && dev_write_file(path, text, n, 0600);
    free(text);
    return good;
}

static void remove_files(const struct torture_cluster *c)
{
    static const char *const kinds[] = {"conf", "log", "log.old", "state", "state.lock"};
    char path[DEV_PATH_MAX];
    for (uint32_t node = 1; node <= c->options->nodes; node++) {
        for (uint32_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            dev_node_path(c->dir, node, kinds[k], path);
            (void)unlink(path);
        }
    }
    dev_path(c->dir, "cluster.key", path);
    (void)unlink(path);
    if (c->made_dir) {
        (void)rmdir(c->dir);
    }
}

bool torture_cluster_init(struct torture_cluster *c, const struct torture_options *options,
                          const struct torture_plan *plan, struct torture_net *net)
{
    char path[DEV_PATH_MAX];
    *c = (struct torture_cluster){.options = options, .plan = plan, .net = net};
    c->nodes = ((nodeset)2 << options->nodes) - 2;
    for (uint32_t node = 0; node <= TORTURE_NODES_MAX; node++) {
        torture_stream_init(&c->node[node].probe);
    }
    if (!make_folder(c) ||
        (!net->separate && !dev_ports_hold(&c->ports, options->nodes, 0, DEV_NODES_MAX))) {
        return false;
    }
    dev_path(c->dir, "cluster.key", path);
    bool good = dev_write_key(path);
    for (uint32_t node = 1; good && node <= options->nodes; node++) {
        char host[16];
        torture_net_host(net, node, host);
        struct torture_node *of = &c->node[node];
        of->address = (struct sockaddr_in){.sin_family = AF_INET};
        of->address.sin_port = htons(port_of(c, node, false));
        good = inet_pton(AF_INET, host, &of->address.sin_addr) == 1 && write_config(c, node);
        snprintf(of->said, sizeof of->said, "has not answered yet");
    }
    return good;
}

void torture_cluster_deinit(struct torture_cluster *c, bool remove)
{
    for (nodeset left = c->nodes; left != 0; left &= left - 1) {
        uint32_t node = nodeset_first(left);
        torture_cluster_kill(c, node);
        torture_stream_deinit(&c->node[node].probe);
    }
    if (!c->net->separate && c->ports.nodes > 0) {
        dev_ports_release(&c->ports);
    }
    if (remove && c->dir[0] != '\0') {
        remove_files(c);
    }
}

/* ---- Processes ---- */

/* Whatever was heard of a process that is gone does not hold of the next one. */
static void forget(struct torture_node *node, const char *said)
{
    torture_stream_close(&node->probe, false);
    node->asked_us = 0;
    node->told_us = 0;
    node->epoch = 0;
    node->operational = 0;
    node->serves = false;
    node->lost = 0;
    snprintf(node->said, sizeof node->said, "%s", said);
}

bool torture_cluster_start(struct torture_cluster *c, uint32_t node)
{
    struct torture_node *of = &c->node[node];
    char conf[DEV_PATH_MAX];
    char log[DEV_PATH_MAX];
    char horkos[] = "horkos";
    char server[] = "server";
    char config[] = "--config";
    dev_node_path(c->dir, node, "conf", conf);
    dev_node_path(c->dir, node, "log", log);
    char *const argv[] = {horkos, server, config, conf, NULL};
    /* A node that stands still would not notice a gentler signal. */
    struct dev_program program = {
        .path = c->options->program, .argv = argv, .log = log, .end_signal = SIGKILL};
    forget(of, "has not answered yet");
    bool started = torture_net_enter(c->net, node) && dev_process_start(&program, &of->process);
    bool left = torture_net_leave(c->net);
    of->up = started;
    of->stopped = false;
    of->leaving = false;
    of->starts++;
    return started && left;
}

void torture_cluster_kill(struct torture_cluster *c, uint32_t node)
{
    struct torture_node *of = &c->node[node];
    char how[80];
    uint64_t end_us = clock_boot_us() + GONE_US;
    of->up = false;
    of->stopped = false;
    of->leaving = false;
    forget(of, "was killed");
    dev_process_signal(&of->process, SIGKILL);
    while (dev_process_runs(&of->process, how) && clock_boot_us() < end_us) {
        (void)poll(NULL, 0, 1);
    }
}

void torture_cluster_pause(struct torture_cluster *c, uint32_t node)
{
    c->node[node].stopped = true;
    dev_process_signal(&c->node[node].process, SIGSTOP);
}

void torture_cluster_resume(struct torture_cluster *c, uint32_t node)
{
    c->node[node].stopped = false;
    dev_process_signal(&c->node[node].process, SIGCONT);
}

void torture_cluster_leave(struct torture_cluster *c, uint32_t node)
{
    c->node[node].leaving = true;
    dev_process_signal(&c->node[node].process, SIGTERM);
}

/* ---- What nodes say ---- */

static void ask(struct torture_node *of, uint32_t n, const struct bytes *args, uint64_t now_us)
{
    if (of->probe.state == STREAM_CLOSED && !torture_stream_connect(&of->probe, &of->address)) {
        return;
    }
    of->asked_us = now_us;
    if (!torture_stream_say(&of->probe, n, args) || !torture_stream_flush(&of->probe)) {
        torture_stream_close(&of->probe, false);
        of->asked_us = 0;
    }
}

static void ask_status(struct torture_node *of, uint64_t now_us)
{
    const struct bytes args[] = {bytes_of("HORKOS", 6), bytes_of("STATUS", 6)};
    ask(of, 2, args, now_us);
}

bool torture_cluster_can_order(const struct torture_cluster *c, uint32_t node)
{
    return c->node[node].up && c->node[node].asked_us == 0 &&
           c->node[node].probe.state == STREAM_OPEN;
}

/* What it answers is heard as no report; the next one tells what came of it. */
void torture_cluster_empty_lost(struct torture_cluster *c, uint32_t node, uint64_t now_us)
{
    const struct bytes args[] = {bytes_of("HORKOS", 6), bytes_of("EMPTY-LOST", 10),
                                 bytes_of("0", 1)};
    ask(&c->node[node], 3, args, now_us);
}

static uint64_t lost_slots(const struct node_report *report)
{
    size_t i = 0;
    const json_t *space = NULL;
    uint64_t lost = 0;
    json_array_foreach(json_object_get(report->json, "spaces"), i, space)
    {
        const json_t *slots = json_object_get(space, "slots");
        lost += (uint64_t)json_integer_value(json_object_get(slots, "lost"));
        lost += (uint64_t)json_integer_value(json_object_get(slots, "emptying"));
    }
    return lost;
}

/* Whether a pass over its objects in this epoch has found none with too few replicas. */
static bool is_repaired(const struct node_report *report, uint64_t epoch)
{
    const json_t *zeus = json_object_get(report->json, "zeus");
    return json_is_object(zeus) && json_integer_value(json_object_get(zeus, "own_poor")) == 0 &&
           (uint64_t)json_integer_value(json_object_get(zeus, "own_walked")) == epoch;
}

static void take_report(struct torture_node *of, const struct node_report *report)
{
    size_t i = 0;
    const json_t *member = NULL;
    of->told_us = of->asked_us;
    of->serves = report->can_serve;
    of->epoch = (uint64_t)json_integer_value(json_object_get(report->json, "epoch"));
    of->operational = 0;
    of->lost = lost_slots(report);
    of->repaired = is_repaired(report, of->epoch);
    json_array_foreach(json_object_get(report->json, "members"), i, member)
    {
        const char *role = json_string_value(json_object_get(member, "role"));
        if (role != NULL && strcmp(role, "operational") == 0 &&
            json_is_true(json_object_get(member, "live"))) {
            of->operational |=
                nodeset_of((uint8_t)json_integer_value(json_object_get(member, "id")));
        }
    }
    snprintf(of->said, sizeof of->said, "%.20s, %.20s, epoch %llu, %s", report->role,
             report->status, (unsigned long long)of->epoch,
             report->can_serve ? "serves" : "does not serve");
}

static void hear(struct torture_node *of)
{
    struct resp_client_reply reply;
    bool good = torture_stream_flush(&of->probe) && torture_stream_receive(&of->probe);
    int err = torture_stream_reply(&of->probe, &reply);
    if (err == HK_OK && of->asked_us != 0) {
        struct node_report report;
        if (reply.kind == RESP_CLIENT_BULK && node_report_parse(reply.text, &report)) {
            take_report(of, &report);
            node_report_deinit(&report);
        }
        of->asked_us = 0;
    }
    if (!good) {
        torture_stream_close(&of->probe, false);
        of->asked_us = 0;
    }
}

void torture_cluster_watch(struct torture_cluster *c, uint64_t now_us, uint64_t every_us)
{
    for (nodeset left = c->nodes; left != 0; left &= left - 1) {
        uint32_t node = nodeset_first(left);
        struct torture_node *of = &c->node[node];
        char how[80];
        if (of->up && !dev_process_runs(&of->process, how)) {
            /* A node that was told to leave ends with status 0. */
            bool as_told = of->leaving && strcmp(how, "exit status 0") == 0;
            if (!as_told && c->ended[0] == '\0') {
                snprintf(c->ended, sizeof c->ended, "node %u has ended%s: %s", node,
                         of->leaving ? ", as it should, but not well" : "", how);
            }
            of->up = false;
            of->leaving = false;
            forget(of, "has ended");
        }
        if (of->asked_us != 0 && now_us > of->asked_us + PROBE_US) {
            torture_stream_close(&of->probe, false);
            of->asked_us = 0;
        }
        if (of->up && of->asked_us == 0 && now_us >= of->told_us + every_us) {
            ask_status(of, now_us);
        }
    }
}

void torture_cluster_poll_set(const struct torture_cluster *c, struct pollfd *set_out)
{
    for (uint32_t node = 1; node <= c->options->nodes; node++) {
        const struct torture_stream *probe = &c->node[node].probe;
        set_out[node - 1] =
            (struct pollfd){.fd = probe->fd, .events = torture_stream_events(probe)};
    }
}

void torture_cluster_polled(struct torture_cluster *c, const struct pollfd *set)
{
    for (uint32_t node = 1; node <= c->options->nodes; node++) {
        if (set[node - 1].revents != 0 && set[node - 1].fd == c->node[node].probe.fd) {
            hear(&c->node[node]);
        }
    }
}

nodeset torture_cluster_sound(const struct torture_cluster *c, uint64_t since_us)
{
    uint64_t newest = 0;
    nodeset sound = 0;
    for (uint32_t node = 1; node <= c->options->nodes; node++) {
        newest = c->node[node].epoch > newest ? c->node[node].epoch : newest;
    }
    for (uint8_t node = 1; node <= c->options->nodes; node++) {
        const struct torture_node *of = &c->node[node];
        if (of->up && !of->stopped && !of->leaving && of->serves && of->told_us >= since_us &&
            of->told_us > 0 && of->epoch == newest && nodeset_has(of->operational, node)) {
            sound |= nodeset_of(node);
        }
    }
    return sound;
}

bool torture_cluster_repaired(const struct torture_cluster *c, uint64_t since_us)
{
    bool all = torture_cluster_sound(c, since_us) == c->nodes;
    for (uint32_t node = 1; node <= c->options->nodes; node++) {
        all = all && c->node[node].repaired;
    }
    return all;
}

bool torture_cluster_lost(const struct torture_cluster *c)
{
    for (uint32_t node = 1; node <= c->options->nodes; node++) {
        if (c->node[node].lost > 0) {
            return true;
        }
    }
    return false;
}

void torture_cluster_tell(const struct torture_cluster *c, FILE *to)
{
    for (uint32_t node = 1; node <= c->options->nodes; node++) {
        char log[DEV_PATH_MAX];
        fprintf(to, "node %u: %s\n", node, c->node[node].said);
        if (!c->node[node].serves) {
            dev_node_path(c->dir, node, "log", log);
            dev_print_tail(log, TAIL_LINES, "    ", to);
        }
    }
}
