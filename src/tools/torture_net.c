#include "tools/torture_net.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/file.h"
#include "tools/torture_exec.h"

#define RULES_BYTES 8192u

static bool run(struct torture_net *net, const char *program, const char *option, const char *text,
                int namespace)
{
    char name[8];
    char how[16];
    char from[] = "-";
    snprintf(name, sizeof name, "%s", program);
    snprintf(how, sizeof how, "%s", option);
    char *const argv[] = {name, how, from, NULL};
    return torture_exec(argv, text, namespace, net->why, sizeof net->why);
}

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && file_write_all(fd, text, strlen(text));
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

/* Without privileges a namespace of users, in which we are root, may still be allowed. */
static bool leave_host(void)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWNET) == 0) {
        return true;
    }
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return false;
    }
    snprintf(map, sizeof map, "0 %u 1\n", (unsigned)uid);
    bool good = put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1\n", (unsigned)gid);
    return put("/proc/self/gid_map", map) && good;
}

/* A new namespace has its loopback down. */
static void raise_loopback(void)
{
    struct ifreq request = {.ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(request.ifr_name, "lo", 3);
    if (fd >= 0) {
        (void)ioctl(fd, SIOCSIFFLAGS, &request);
        close(fd);
    }
}

static int this_namespace(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static bool make_namespaces(struct torture_net *net)
{
    bool good = leave_host();
    if (!good) {
        snprintf(net->why, sizeof net->why, "no network namespace: %s", strerror(errno));
        return false;
    }
    raise_loopback();
    net->home = this_namespace();
    for (uint32_t node = 1; good && node <= net->nodes; node++) {
        good = unshare(CLONE_NEWNET) == 0;
        raise_loopback();
        net->of[node] = good ? this_namespace() : -1;
        good = good && net->of[node] >= 0 && setns(net->home, CLONE_NEWNET) == 0;
    }
    if (!good) {
        snprintf(net->why, sizeof net->why, "no network namespace for a node: %s", strerror(errno));
        (void)setns(net->home, CLONE_NEWNET);
    }
    return good;
}

static bool make_links(struct torture_net *net)
{
    char text[RULES_BYTES];
    int n = snprintf(text, sizeof text,
                     "link add bridge0 type bridge\nlink set bridge0 up\n"
                     "addr add 10.77.0.254/24 dev bridge0\n");
    for (uint32_t node = 1; node <= net->nodes; node++) {
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "link add node%u type veth peer name eth0 netns /proc/%d/fd/%d\n"
                      "link set node%u master bridge0\nlink set node%u up\n",
                      node, (int)getpid(), net->of[node], node, node);
    }
    bool good = run(net, "ip", "-batch", text, -1);
    for (uint32_t node = 1; good && node <= net->nodes; node++) {
        snprintf(text, sizeof text, "addr add 10.77.0.%u/24 dev eth0\nlink set eth0 up\n", node);
        good = run(net, "ip", "-batch", text, net->of[node]);
    }
    return good;
}

/* Whether all kinds of rules that will be needed are possible here. */
static bool try_rules(struct torture_net *net)
{
    net->cut[1][1] = 1;
    bool good = torture_net_apply(net);
    net->cut[1][1] = 0;
    good = good && torture_net_apply(net);
    net->no_clients[1] = 1;
    net->no_peers[1][1] = 1;
    good = good && torture_net_apply_node(net, 1);
    net->no_clients[1] = 0;
    net->no_peers[1][1] = 0;
    return good && torture_net_apply_node(net, 1);
}

void torture_net_open(struct torture_net *net, uint32_t nodes, bool wanted)
{
    *net = (struct torture_net){.nodes = nodes, .home = -1};
    for (uint32_t node = 0; node <= TORTURE_NODES_MAX; node++) {
        net->of[node] = -1;
    }
    if (!wanted) {
        snprintf(net->why, sizeof net->why, "--loopback was given");
        return;
    }
    /* What is missing is found before anything is changed. */
    net->separate = run(net, "ip", "-batch", "", -1) && run(net, "nft", "-v", "", -1) &&
                    make_namespaces(net) && make_links(net) && try_rules(net);
}

void torture_net_close(struct torture_net *net)
{
    for (uint32_t node = 0; node <= TORTURE_NODES_MAX; node++) {
        if (net->of[node] >= 0) {
            close(net->of[node]);
        }
        net->of[node] = -1;
    }
    if (net->home >= 0) {
        close(net->home);
    }
    net->home = -1;
}

bool torture_net_enter(const struct torture_net *net, uint32_t node)
{
    return !net->separate || setns(net->of[node], CLONE_NEWNET) == 0;
}

bool torture_net_leave(const struct torture_net *net)
{
    return !net->separate || setns(net->home, CLONE_NEWNET) == 0;
}

void torture_net_host(const struct torture_net *net, uint32_t node, char host_out[16])
{
    if (net->separate) {
        snprintf(host_out, 16, "10.77.0.%u", node & 255u);
    } else {
        snprintf(host_out, 16, "127.0.0.1");
    }
}

void torture_net_cut(struct torture_net *net, nodeset from, nodeset to, bool both, bool cut)
{
    for (uint8_t a = 1; a <= net->nodes; a++) {
        for (uint8_t b = 1; b <= net->nodes; b++) {
            bool there = nodeset_has(from, a) && nodeset_has(to, b);
            bool back = both && nodeset_has(from, b) && nodeset_has(to, a);
            if (a != b && (there || back)) {
                net->cut[a][b] += cut ? 1 : UINT32_MAX;
            }
        }
    }
}

nodeset torture_net_disturbed(const struct torture_net *net)
{
    nodeset disturbed = 0;
    for (uint8_t a = 1; a <= net->nodes; a++) {
        for (uint8_t b = 1; b <= net->nodes; b++) {
            if (net->cut[a][b] > 0 || net->no_peers[a][b] > 0) {
                disturbed |= nodeset_of(a) | nodeset_of(b);
            }
        }
    }
    return disturbed;
}

bool torture_net_apply(struct torture_net *net)
{
    char text[RULES_BYTES];
    const char *before = "  iifname . oifname { ";
    /* The first line makes the table if there is none, so that the second one can delete it: all
     * that follows takes the place of the old rules in one transaction. */
    int n = snprintf(text, sizeof text,
                     "table bridge torture\ndelete table bridge torture\n"
                     "table bridge torture {\n chain cuts {\n"
                     "  type filter hook forward priority 0; policy accept;\n");
    for (uint32_t a = 1; a <= net->nodes; a++) {
        for (uint32_t b = 1; b <= net->nodes; b++) {
            if (net->cut[a][b] > 0) {
                n += snprintf(text + n, sizeof text - (size_t)n, "%s\"node%u\" . \"node%u\"",
                              before, a, b);
                before = ", ";
            }
        }
    }
    snprintf(text + n, sizeof text - (size_t)n, "%s }\n}\n", before[0] == ',' ? " } drop\n" : "");
    return !net->separate || run(net, "nft", "-f", text, -1);
}

static int add_resets(const struct torture_net *net, uint32_t node, bool in, char *text, int n)
{
    /* What an answered packet is: our own resets must pass. */
    static const char end[] = "tcp flags & rst == 0 reject with tcp reset\n";
    char peers[200] = "";
    size_t m = 0;
    for (uint32_t peer = 1; peer <= net->nodes; peer++) {
        if (net->no_peers[node][peer] > 0) {
            m += (size_t)snprintf(peers + m, sizeof peers - m, "%s10.77.0.%u", m == 0 ? "" : ", ",
                                  peer);
        }
    }
    n += snprintf(text + n, RULES_BYTES - (size_t)n,
                  " chain %s {\n  type filter hook %sput priority 0; policy accept;\n",
                  in ? "arriving" : "leaving", in ? "in" : "out");
    if (net->no_clients[node] > 0) {
        n += snprintf(text + n, RULES_BYTES - (size_t)n, "  tcp %cport %u %s", in ? 'd' : 's',
                      TORTURE_PORT_CLIENTS, end);
    }
    if (m > 0) {
        n += snprintf(text + n, RULES_BYTES - (size_t)n, "  ip %caddr { %s } %s", in ? 's' : 'd',
                      peers, end);
    }
    return n + snprintf(text + n, RULES_BYTES - (size_t)n, " }\n");
}

bool torture_net_apply_node(struct torture_net *net, uint32_t node)
{
    char text[RULES_BYTES];
    int n = snprintf(text, sizeof text,
                     "table inet torture\ndelete table inet torture\ntable inet torture {\n");
    n = add_resets(net, node, true, text, n);
    n = add_resets(net, node, false, text, n);
    snprintf(text + n, sizeof text - (size_t)n, "}\n");
    return !net->separate || run(net, "nft", "-f", text, net->of[node]);
}
