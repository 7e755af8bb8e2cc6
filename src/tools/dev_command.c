/* `horkos dev`: see dev_options.c for its command line. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "server/config.h"
#include "server/state_file.h"
#include "tools/commands.h"
#include "tools/dev_cluster.h"
#include "tools/dev_options.h"

#define WATCH_MS 250u
#define TAIL_LINES 8u

/* What a command needs beside its options. */
struct dev {
    const struct dev_options *options;
    char dir[DEV_DIR_MAX];            /* absolute */
    char dir_option[DEV_DIR_MAX + 8]; /* " --dir D" for the commands that are suggested, or "" */
    char program[DEV_DIR_MAX];        /* we ourselves, as one would type it here */
    struct dev_cluster cluster;
    struct dev_ports ports;
    int lock;
};

/* The program's path, from this folder if it lies below. */
static void name_program(char program_out[DEV_DIR_MAX])
{
    char here[DEV_DIR_MAX];
    ssize_t n = readlink("/proc/self/exe", program_out, DEV_DIR_MAX - 1);
    if (n <= 0) {
        snprintf(program_out, DEV_DIR_MAX, "horkos");
        return;
    }
    program_out[n] = '\0';
    if (getcwd(here, sizeof here) != NULL) {
        size_t length = strlen(here);
        if (strncmp(program_out, here, length) == 0 && program_out[length] == '/') {
            memmove(program_out, program_out + length + 1, (size_t)n - length);
        }
        if (strchr(program_out, '/') == NULL && strlen(program_out) + 3 <= DEV_DIR_MAX) {
            memmove(program_out + 2, program_out, strlen(program_out) + 1);
            memcpy(program_out, "./", 2);
        }
    }
}

static void print_nodes(nodeset nodes, FILE *to)
{
    const char *before = nodeset_count(nodes) == 1 ? "node " : "nodes ";
    for (; nodes != 0; nodes &= nodes - 1) {
        fprintf(to, "%s%u", before, nodeset_first(nodes));
        before = nodeset_count(nodes) == 2 ? " and " : ", ";
    }
}

/* The folder is ours alone from here until `lock` is closed. */
static bool open_folder(struct dev *dev, bool make)
{
    char fallback[DEV_DIR_MAX];
    memcpy(dev->dir, dev->options->dir, sizeof dev->dir);
    if (make ? !dev_folder_make(dev->dir) : !dev_folder_find(dev->dir)) {
        if (!make) {
            fprintf(stderr, "horkos dev: no cluster was started there; --dir names another "
                            "folder\n");
        }
        return false;
    }
    bool standard = dev_default_dir(getenv("XDG_STATE_HOME"), getenv("HOME"), fallback) &&
                    strcmp(dev->options->dir, fallback) == 0;
    snprintf(dev->dir_option, sizeof dev->dir_option, "%s%s", standard ? "" : " --dir ",
             standard ? "" : dev->options->dir);
    name_program(dev->program);
    dev->lock = dev_folder_lock(dev->dir);
    if (dev->lock < 0) {
        return false;
    }
    dev_cluster_load(&dev->cluster, dev->dir);
    return true;
}

static void unlock(struct dev *dev)
{
    if (dev->lock >= 0) {
        close(dev->lock);
    }
    dev->lock = -1;
}

/* Refuses a folder whose nodes run, or one whose node runs although its pid file was lost. */
static bool is_at_rest(struct dev *dev)
{
    nodeset running = dev_cluster_running(&dev->cluster);
    if (running != 0) {
        fprintf(stderr, "horkos dev: in %s ", dev->dir);
        print_nodes(running, stderr);
        fprintf(stderr, " already run%s, as process", nodeset_count(running) == 1 ? "s" : "");
        for (nodeset left = running; left != 0; left &= left - 1) {
            fprintf(stderr, " %d", (int)dev->cluster.node[nodeset_first(left)].process.pid);
        }
        fprintf(stderr,
                "; stop them with: %s dev --stop%s\nor choose another folder with --dir "
                "and other ports with --base-port\n",
                dev->program, dev->dir_option);
        return false;
    }
    for (nodeset left = dev->cluster.nodes; left != 0; left &= left - 1) {
        char path[DEV_PATH_MAX];
        int fd = -1;
        dev_node_path(dev->dir, nodeset_first(left), "state", path);
        int err = state_file_lock(path, &fd);
        if (err == HK_ERR_FULL) {
            fprintf(stderr,
                    "horkos dev: a process that dev does not know runs node %u in %s: end it, or "
                    "choose another folder with --dir\n",
                    nodeset_first(left), dev->dir);
            return false;
        }
        if (err == HK_OK) {
            close(fd);
        }
    }
    return true;
}

static bool write_text(const char *path, void (*write)(FILE *to, const void *context),
                       const void *context)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (to == NULL) {
        perror("horkos dev");
        return false;
    }
    write(to, context);
    bool good = fclose(to) == 0 && dev_write_file(path, text, n, 0600);
    free(text);
    return good;
}

struct config_text {
    const struct dev *dev;
    uint32_t node;
};

static void write_config(FILE *to, const void *context)
{
    const struct config_text *text = context;
    dev_config_write(text->dev->options, &text->dev->ports, text->node, to);
}

static void write_ports(FILE *to, const void *context)
{
    const struct dev_ports *ports = context;
    for (uint32_t node = 1; node <= ports->nodes; node++) {
        fprintf(to, "%u %u %u\n", node, (unsigned)ports->client[node].port,
                (unsigned)ports->peer[node].port);
    }
}

static bool check_config(const char *path)
{
    struct config *config = calloc(1, sizeof *config);
    char error[1024] = "no memory";
    bool good = config != NULL && config_read(path, config, error, sizeof error) == HK_OK;
    if (!good) {
        fprintf(stderr, "horkos dev: %s\n", error);
    }
    free(config);
    return good;
}

/* All files of a new cluster. */
static bool write_files(struct dev *dev)
{
    char path[DEV_PATH_MAX];
    if (dev_folder_nodes(dev->dir, "conf") != 0) {
        fprintf(stderr, "the cluster that was here before has stopped, and what it held is gone: "
                        "this is a new one\n");
    }
    dev_path(dev->dir, "cluster.key", path);
    if (!dev_folder_clear(dev->dir) || !dev_write_key(path)) {
        return false;
    }
    for (uint32_t node = 1; node <= dev->ports.nodes; node++) {
        struct config_text text = {.dev = dev, .node = node};
        dev_node_path(dev->dir, node, "conf", path);
        if (!write_text(path, write_config, &text) || !check_config(path)) {
            return false;
        }
    }
    dev_path(dev->dir, "ports", path);
    return write_text(path, write_ports, &dev->ports);
}

static void tell_why(struct dev *dev, enum dev_outcome outcome, nodeset lacks)
{
    if (outcome == DEV_INTERRUPTED) {
        fprintf(stderr, "horkos dev: interrupted\n");
        return;
    }
    for (; lacks != 0; lacks &= lacks - 1) {
        uint32_t node = nodeset_first(lacks);
        const struct dev_node *of = &dev->cluster.node[node];
        char log[DEV_PATH_MAX];
        char how[80];
        dev_node_path(dev->dir, node, "log", log);
        bool runs = dev_process_runs(&of->process, how);
        fprintf(stderr, "horkos dev: node %u %s%s%s; the end of %s:\n", node,
                runs ? "does not serve: " : "has ended", runs || of->how[0] == '\0' ? "" : ": ",
                runs ? of->said : of->how, log);
        dev_print_tail(log, TAIL_LINES, "    ", stderr);
    }
}

static void print_commands(struct dev *dev)
{
    const struct dev_ports *ports = &dev->ports;
    uint32_t n = ports->nodes;
    bool password = dev->cluster.node[1].contact.password[0] != '\0';
    const char *redis_more = password ? " --askpass" : "";
    const char *status_more = password ? " --password-file FILE" : "";
    printf("try:\n");
    printf("  redis-cli%s -p %u set greeting hello\n", redis_more, (unsigned)ports->client[1].port);
    printf("  redis-cli%s -p %u get greeting\n", redis_more,
           (unsigned)ports->client[n > 1 ? 2 : 1].port);
    printf("  %s status%s -p %u\n", dev->program, status_more,
           (unsigned)ports->client[n > 2 ? 3 : n].port);
}

static void print_cluster(struct dev *dev, uint64_t started_us)
{
    uint32_t n = dev->ports.nodes;
    printf("%u node%s serve%s after %.2f s; files in %s\n", n, n == 1 ? "" : "s", n == 1 ? "s" : "",
           (double)(clock_boot_us() - started_us) / 1e6, dev->dir);
    for (uint32_t node = 1; node <= n; node++) {
        printf("node %u: clients 127.0.0.1:%u, peers 127.0.0.1:%u, process %d\n", node,
               (unsigned)dev->ports.client[node].port, (unsigned)dev->ports.peer[node].port,
               (int)dev->cluster.node[node].process.pid);
    }
    print_commands(dev);
    fflush(stdout);
}

/* Starts all nodes and waits until they serve; else none is left running. */
static bool launch_all(struct dev *dev, uint64_t started_us)
{
    nodeset all = 0;
    nodeset lacks = 0;
    enum dev_outcome outcome = DEV_DIED;
    bool launched = true;
    dev->cluster.nodes = 0;
    dev->cluster.ports = &dev->ports;
    for (uint32_t node = 1; launched && node <= dev->ports.nodes; node++) {
        launched = dev_cluster_launch(&dev->cluster, node, !dev->options->detach);
        all |= nodeset_of((uint8_t)node);
    }
    if (launched) {
        outcome = dev_cluster_wait(&dev->cluster, all, dev->options->wait_s, false, &lacks);
    }
    dev->cluster.ports = NULL;
    dev_ports_release(&dev->ports);
    if (outcome == DEV_SERVES) {
        print_cluster(dev, started_us);
        return true;
    }
    if (launched) {
        tell_why(dev, outcome, lacks);
    }
    (void)dev_cluster_stop(&dev->cluster);
    return false;
}

static int stop_all(struct dev *dev)
{
    bool stopped = dev_cluster_stop(&dev->cluster);
    if (stopped) {
        printf("all nodes have stopped; what they held is gone\n");
    }
    return stopped ? STATUS_OK : STATUS_FAILED;
}

/* Whether a node runs now, maybe as another process than the one we know: other invocations of dev
 * start and stop nodes, too, and the pid files tell. */
static bool runs_now(struct dev *dev, uint32_t node)
{
    struct dev_node *of = &dev->cluster.node[node];
    char path[DEV_PATH_MAX];
    char how[80];
    struct dev_process known;
    if (dev_process_runs(&of->process, how)) {
        return true;
    }
    if (how[0] != '\0') {
        memcpy(of->how, how, sizeof how);
    }
    dev_node_path(dev->dir, node, "pid", path);
    dev_process_load(path, &known);
    if (!dev_process_runs(&known, how)) {
        return false;
    }
    of->process = known;
    of->how[0] = '\0';
    return true;
}

/* Says what happened to the nodes since `before` ran; returns those that run now. */
static nodeset notice(struct dev *dev, nodeset before)
{
    nodeset now = 0;
    for (nodeset left = dev->cluster.nodes; left != 0; left &= left - 1) {
        uint8_t node = nodeset_first(left);
        now |= runs_now(dev, node) ? nodeset_of(node) : 0;
    }
    /* Nodes without a pid file were stopped on purpose. */
    nodeset ended = before & ~now & dev_folder_nodes(dev->dir, "pid");
    for (nodeset left = ended; left != 0; left &= left - 1) {
        uint8_t node = nodeset_first(left);
        const struct dev_node *of = &dev->cluster.node[node];
        printf("node %u has ended%s%s", node, of->how[0] == '\0' ? "" : ": ", of->how);
        if (now != 0) {
            printf("; start it again with: %s dev --start %u%s", dev->program, node,
                   dev->dir_option);
        }
        printf("\n");
    }
    for (nodeset left = now & ~before; left != 0; left &= left - 1) {
        uint8_t node = nodeset_first(left);
        printf("node %u runs again, as process %d\n", node,
               (int)dev->cluster.node[node].process.pid);
    }
    fflush(stdout);
    return now;
}

/* Whether another dev is at work in the folder: what it has done shows only when it is ready. */
static bool others_work(const struct dev *dev)
{
    char path[DEV_PATH_MAX];
    dev_path(dev->dir, "dev.lock", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool busy = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
    if (fd >= 0) {
        close(fd);
    }
    return busy;
}

/* Until a signal says so, or no node is left. */
static int watch(struct dev *dev)
{
    nodeset running = dev->cluster.nodes;
    printf("Ctrl-C stops them\n");
    fflush(stdout);
    while (!dev_pause(WATCH_MS)) {
        running = others_work(dev) ? running : notice(dev, running);
        if (running == 0) {
            bool stopped = dev_folder_nodes(dev->dir, "pid") == 0;
            printf(stopped ? "all nodes were stopped\n"
                           : "no node is left, and what they held is gone\n");
            return stopped ? STATUS_OK : STATUS_FAILED;
        }
    }
    printf("stopping\n");
    fflush(stdout);
    (void)notice(dev, running);
    return stop_all(dev);
}

static int run(struct dev *dev)
{
    uint64_t started_us = clock_boot_us();
    const struct dev_options *options = dev->options;
    if (!open_folder(dev, true) || !is_at_rest(dev) ||
        !dev_ports_hold(&dev->ports, options->nodes, options->base_port, DEV_PEER_PORTS_ABOVE)) {
        return STATUS_FAILED;
    }
    dev_signals_take();
    bool serves = write_files(dev) && launch_all(dev, started_us);
    dev_ports_release(&dev->ports);
    unlock(dev);
    if (!serves) {
        return STATUS_FAILED;
    }
    if (options->detach) {
        printf("stop them with: %s dev --stop%s\n", dev->program, dev->dir_option);
        return STATUS_OK;
    }
    return watch(dev);
}

static int stop(struct dev *dev)
{
    if (!open_folder(dev, false)) {
        return STATUS_FAILED;
    }
    dev_signals_take();
    if (dev_cluster_running(&dev->cluster) == 0) {
        (void)dev_cluster_stop(&dev->cluster); /* for the pid files of nodes that are dead */
        printf("no node runs in %s\n", dev->dir);
        return STATUS_OK;
    }
    return stop_all(dev);
}

/* The folder, with the node of the command in it. */
static bool open_node(struct dev *dev)
{
    uint32_t node = dev->options->node;
    if (!open_folder(dev, false)) {
        return false;
    }
    if (!nodeset_has(dev_folder_nodes(dev->dir, "conf"), (uint8_t)node)) {
        fprintf(stderr, "horkos dev: there is no node %u in %s\n", node, dev->dir);
        return false;
    }
    return true;
}

static int kill_node(struct dev *dev)
{
    if (!open_node(dev)) {
        return STATUS_FAILED;
    }
    uint32_t node = dev->options->node;
    dev_signals_take();
    if (!nodeset_has(dev_cluster_running(&dev->cluster), (uint8_t)node)) {
        fprintf(stderr, "horkos dev: node %u does not run\n", node);
        return STATUS_FAILED;
    }
    if (!dev_cluster_kill(&dev->cluster, node)) {
        fprintf(stderr, "horkos dev: node %u (process %d) cannot be ended\n", node,
                (int)dev->cluster.node[node].process.pid);
        return STATUS_FAILED;
    }
    nodeset left = dev_cluster_running(&dev->cluster);
    if (left == 0) {
        printf("node %u is killed; no node is left, and what they held is gone\n", node);
        return STATUS_OK;
    }
    printf("node %u is killed; start it again with: %s dev --start %u%s\n", node, dev->program,
           node, dev->dir_option);
    if (!nodeset_majority(left, dev_folder_nodes(dev->dir, "conf"))) {
        printf("the nodes that are left are no majority and will not serve\n");
    }
    return STATUS_OK;
}

/* A node that starts has forgotten everything, and only a majority of others can take it in. */
static int start_in_vain(struct dev *dev, uint32_t node)
{
    enum dev_outcome outcome = dev_cluster_wait_answer(&dev->cluster, node, dev->options->wait_s);
    if (outcome == DEV_DIED) {
        tell_why(dev, outcome, nodeset_of((uint8_t)node));
        return STATUS_FAILED;
    }
    fprintf(
        stderr,
        "horkos dev: node %u runs and does not serve (%s): only a cluster that serves takes in\n"
        "a node that starts again, and too few of its nodes run. If one of those that run holds\n"
        "data, `%s recover` lets it serve that; else stop all and start a new cluster\n",
        node, dev->cluster.node[node].said, dev->program);
    return STATUS_FAILED;
}

static int start(struct dev *dev)
{
    char conf[DEV_PATH_MAX];
    uint64_t started_us = clock_boot_us();
    nodeset lacks = 0;
    if (!open_node(dev)) {
        return STATUS_FAILED;
    }
    uint32_t node = dev->options->node;
    nodeset all = dev_folder_nodes(dev->dir, "conf");
    nodeset running = dev_cluster_running(&dev->cluster);
    if (nodeset_has(running, (uint8_t)node)) {
        fprintf(stderr, "horkos dev: node %u already runs, as process %d\n", node,
                (int)dev->cluster.node[node].process.pid);
        return STATUS_FAILED;
    }
    dev_node_path(dev->dir, node, "conf", conf);
    dev_signals_take();
    /* After a recover fewer than a majority of those in the folder may serve. */
    bool hope = nodeset_majority(running & all, all) || dev_cluster_serves(&dev->cluster, running);
    if (!check_config(conf) || !dev_cluster_launch(&dev->cluster, node, false)) {
        return STATUS_FAILED;
    }
    if (!hope) {
        return start_in_vain(dev, node);
    }
    enum dev_outcome outcome = dev_cluster_wait(&dev->cluster, nodeset_of((uint8_t)node),
                                                dev->options->wait_s, true, &lacks);
    if (outcome == DEV_SERVES) {
        printf("node %u serves after %.2f s, as process %d\n", node,
               (double)(clock_boot_us() - started_us) / 1e6,
               (int)dev->cluster.node[node].process.pid);
        return STATUS_OK;
    }
    tell_why(dev, outcome, lacks);
    if (outcome != DEV_DIED) {
        fprintf(stderr, "horkos dev: node %u goes on meanwhile\n", node);
    }
    return STATUS_FAILED;
}

int dev_command(int argc, char **argv)
{
    struct dev_options options;
    bool help = false;
    int status = dev_options_parse(argc, argv, &options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    struct dev *dev = calloc(1, sizeof *dev);
    if (dev == NULL) {
        perror("horkos dev");
        return STATUS_FAILED;
    }
    dev->options = &options;
    dev->lock = -1;
    switch (options.action) {
    case DEV_RUN:
        status = run(dev);
        break;
    case DEV_STOP:
        status = stop(dev);
        break;
    case DEV_START:
        status = start(dev);
        break;
    case DEV_KILL:
        status = kill_node(dev);
        break;
    }
    unlock(dev);
    free(dev);
    return status;
}
