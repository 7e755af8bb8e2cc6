#include "tools/dev_cluster.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/node_report.h"

#define POLL_MS 10u     /* between two questions whether a node serves */
#define ANSWER_MS 1000u /* a node that does not answer in that time is asked again */
#define LEAVE_MS                                                                                   \
    200u                /* after the first SIGTERM: all leave, and nothing can be handed over, so
                             this is for the replies to commands that are under way */
#define FORCED_MS 3000u /* after the second */
#define KILLED_MS 5000u /* after SIGKILL */

static void ending_signals(sigset_t *set_out)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(set_out);
    for (uint32_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
            sigaddset(set_out, signals[i]);
        }
    }
    sigaddset(set_out, SIGCHLD);
}

void dev_signals_take(void)
{
    sigset_t set;
    ending_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

bool dev_pause(uint32_t ms)
{
    sigset_t set;
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    ending_signals(&set);
    int signal = sigtimedwait(&set, NULL, &time);
    return signal > 0 && signal != SIGCHLD;
}

void dev_cluster_load(struct dev_cluster *cluster, const char *dir)
{
    *cluster = (struct dev_cluster){0};
    snprintf(cluster->dir, sizeof cluster->dir, "%s", dir);
    cluster->nodes = dev_folder_nodes(dir, "conf") | dev_folder_nodes(dir, "pid");
    for (nodeset left = cluster->nodes; left != 0; left &= left - 1) {
        char path[DEV_PATH_MAX];
        uint32_t node = nodeset_first(left);
        dev_node_path(dir, node, "pid", path);
        dev_process_load(path, &cluster->node[node].process);
    }
}

static bool runs(struct dev_cluster *cluster, uint32_t node)
{
    char how[80];
    bool is = dev_process_runs(&cluster->node[node].process, how);
    /* Only the first who asks after the end of a child learns how it ended. */
    if (how[0] != '\0') {
        memcpy(cluster->node[node].how, how, sizeof how);
    }
    return is;
}

nodeset dev_cluster_running(struct dev_cluster *cluster)
{
    nodeset running = 0;
    for (nodeset left = cluster->nodes; left != 0; left &= left - 1) {
        uint8_t node = nodeset_first(left);
        running |= runs(cluster, node) ? nodeset_of(node) : 0;
    }
    return running;
}

bool dev_cluster_launch(struct dev_cluster *cluster, uint32_t node, bool ends_with_us)
{
    char conf[DEV_PATH_MAX];
    char log[DEV_PATH_MAX];
    char pid[DEV_PATH_MAX];
    char horkos[] = "horkos";
    char server[] = "server";
    char config[] = "--config";
    struct dev_node *started = &cluster->node[node];
    dev_node_path(cluster->dir, node, "conf", conf);
    dev_node_path(cluster->dir, node, "log", log);
    dev_node_path(cluster->dir, node, "pid", pid);
    char *const argv[] = {horkos, server, config, conf, NULL};
    struct dev_program program = {
        .path = "/proc/self/exe",
        .argv = argv,
        .log = log,
        .end_signal = ends_with_us ? SIGTERM : 0,
    };
    *started = (struct dev_node){.said = "does not answer"};
    cluster->nodes |= nodeset_of((uint8_t)node);
    return dev_config_contact(conf, &started->contact) &&
           dev_process_start(&program, &started->process) &&
           dev_process_save(&started->process, pid);
}

/* Asks a node how it is; whether it serves. */
static bool ask(struct dev_cluster *cluster, uint32_t number, bool progress)
{
    struct dev_node *node = &cluster->node[number];
    const struct dev_contact *contact = &node->contact;
    struct node_address address = {
        .target = {.host = contact->host, .port = contact->port},
        .password = contact->password[0] == '\0' ? NULL : contact->password,
    };
    struct node_report report;
    char why[400];
    char said[sizeof node->said];
    if (contact->socket_path[0] != '\0') {
        address.target.socket_path = contact->socket_path;
    }
    enum node_report_result result =
        node_report_fetch(&address, ANSWER_MS, &report, why, sizeof why);
    bool serves = result == NODE_REPORT_OK && report.can_serve;
    if (result == NODE_REPORT_OK) {
        snprintf(said, sizeof said, "%.40s, %.40s", report.role, report.status);
    } else if (result == NODE_REPORT_DENIED) {
        /* It takes commands, and only those who know its password see more. */
        snprintf(said, sizeof said, "answers, and wants a password");
        serves = true;
    } else {
        snprintf(said, sizeof said, "%.99s", why);
    }
    node->answers = result != NODE_REPORT_UNREACHABLE;
    if (node->answers && cluster->ports != NULL) {
        dev_ports_release_node(cluster->ports, number);
    }
    if (progress && node->answers && strcmp(said, node->said) != 0) {
        fprintf(stderr, "node %u: %s\n", number, said);
    }
    memcpy(node->said, said, sizeof said);
    node_report_deinit(&report);
    return serves;
}

bool dev_cluster_serves(struct dev_cluster *cluster, nodeset running)
{
    for (; running != 0; running &= running - 1) {
        uint8_t node = nodeset_first(running);
        char conf[DEV_PATH_MAX];
        dev_node_path(cluster->dir, node, "conf", conf);
        if (dev_config_contact(conf, &cluster->node[node].contact) && ask(cluster, node, false)) {
            return true;
        }
    }
    return false;
}

enum dev_outcome dev_cluster_wait(struct dev_cluster *cluster, nodeset which, uint32_t wait_s,
                                  bool progress, nodeset *lacks_out)
{
    uint64_t end_us = clock_boot_us() + (uint64_t)wait_s * 1000000;
    for (*lacks_out = which;;) {
        for (nodeset left = *lacks_out; left != 0; left &= left - 1) {
            uint8_t node = nodeset_first(left);
            if (!runs(cluster, node)) {
                return DEV_DIED;
            }
            if (ask(cluster, node, progress)) {
                *lacks_out &= ~nodeset_of(node);
            }
        }
        if (*lacks_out == 0) {
            return DEV_SERVES;
        }
        if (clock_boot_us() >= end_us) {
            return DEV_LATE;
        }
        if (dev_pause(POLL_MS)) {
            return DEV_INTERRUPTED;
        }
    }
}

enum dev_outcome dev_cluster_wait_answer(struct dev_cluster *cluster, uint32_t node,
                                         uint32_t wait_s)
{
    uint64_t end_us = clock_boot_us() + (uint64_t)wait_s * 1000000;
    for (;;) {
        if (!runs(cluster, node)) {
            return DEV_DIED;
        }
        bool serves = ask(cluster, node, false);
        if (serves || cluster->node[node].answers) {
            return serves ? DEV_SERVES : DEV_LATE;
        }
        if (clock_boot_us() >= end_us) {
            return DEV_LATE;
        }
        if (dev_pause(POLL_MS)) {
            return DEV_INTERRUPTED;
        }
    }
}

static void tell(struct dev_cluster *cluster, nodeset running, int signal)
{
    for (nodeset left = running; left != 0; left &= left - 1) {
        const struct dev_process *process = &cluster->node[nodeset_first(left)].process;
        dev_process_signal(process, signal);
        dev_process_signal(process, SIGCONT); /* one that is stopped would not notice */
    }
}

/* Sends all of `running` a signal and waits until they have ended, the time is up, or somebody is
 * impatient. Returns those that still run. The signal is repeated: one that comes while the same
 * still waits for a busy process is lost, and a second SIGTERM would be the first that it sees. */
static nodeset end(struct dev_cluster *cluster, nodeset running, int signal, uint32_t wait_ms)
{
    uint64_t again_us = 0, end_us = clock_boot_us() + (uint64_t)wait_ms * 1000;
    for (;;) {
        uint64_t now_us = clock_boot_us();
        if (now_us >= again_us) {
            tell(cluster, running, signal);
            again_us = now_us + LEAVE_MS * 1000u;
        }
        running = dev_cluster_running(cluster);
        if (running == 0 || clock_boot_us() >= end_us || dev_pause(POLL_MS)) {
            return running;
        }
    }
}

bool dev_cluster_kill(struct dev_cluster *cluster, uint32_t node)
{
    uint64_t end_us = clock_boot_us() + KILLED_MS * UINT64_C(1000);
    dev_process_signal(&cluster->node[node].process, SIGKILL);
    while (runs(cluster, node)) {
        if (clock_boot_us() >= end_us) {
            return false;
        }
        (void)dev_pause(POLL_MS);
    }
    return true;
}

bool dev_cluster_stop(struct dev_cluster *cluster)
{
    nodeset running = dev_cluster_running(cluster);
    running = running == 0 ? 0 : end(cluster, running, SIGTERM, LEAVE_MS);
    running = running == 0 ? 0 : end(cluster, running, SIGTERM, FORCED_MS);
    for (nodeset left = running; left != 0; left &= left - 1) {
        fprintf(stderr, "horkos dev: node %u does not end and is killed\n", nodeset_first(left));
    }
    running = running == 0 ? 0 : end(cluster, running, SIGKILL, KILLED_MS);
    for (nodeset left = cluster->nodes; left != 0; left &= left - 1) {
        uint8_t node = nodeset_first(left);
        char path[DEV_PATH_MAX];
        dev_node_path(cluster->dir, node, "pid", path);
        if (nodeset_has(running, node)) {
            fprintf(stderr, "horkos dev: node %u (process %d) cannot be ended\n", node,
                    (int)cluster->node[node].process.pid);
        } else {
            (void)unlink(path);
        }
    }
    return running == 0;
}
