#include "tools/dev_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_FIRST 10000u /* below are those that people remember and may want themselves */
#define PORT_FIRST_EVER 1024u
#define PORT_LAST 65535u
#define PORTS_ENOUGH 1000u

/* How many of [first, PORT_LAST] lie outside [low, high]. */
static uint32_t count_from(uint32_t first, uint32_t low, uint32_t high)
{
    uint32_t below = low > first ? (low - 1 < PORT_LAST ? low - 1 : PORT_LAST) - first + 1 : 0;
    uint32_t above_from = high + 1 > first ? high + 1 : first;
    uint32_t above = above_from <= PORT_LAST ? PORT_LAST - above_from + 1 : 0;
    return below + above;
}

uint32_t dev_port_count(uint32_t low, uint32_t high)
{
    uint32_t n = count_from(PORT_FIRST, low, high);
    return n < PORTS_ENOUGH ? PORT_LAST - PORT_FIRST_EVER + 1 : n;
}

uint16_t dev_port_at(uint32_t index, uint32_t low, uint32_t high)
{
    uint32_t n = count_from(PORT_FIRST, low, high);
    if (n < PORTS_ENOUGH) {
        return (uint16_t)(PORT_FIRST_EVER + index % (PORT_LAST - PORT_FIRST_EVER + 1));
    }
    uint32_t port = PORT_FIRST + index % n;
    if (port >= low && low <= PORT_LAST) {
        uint32_t skipped_from = low > PORT_FIRST ? low : PORT_FIRST;
        port += high >= skipped_from ? high - skipped_from + 1 : 0;
    }
    return (uint16_t)port;
}

static void kernel_range(uint32_t *low_out, uint32_t *high_out)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    *low_out = 32768;
    *high_out = 60999;
    if (file != NULL) {
        unsigned low = 0;
        unsigned high = 0;
        if (fscanf(file, "%u %u", &low, &high) == 2 && low <= high && high <= PORT_LAST) {
            *low_out = low;
            *high_out = high;
        }
        fclose(file);
    }
}

/* A socket bound to the port, or -1. `share`: beside one that is closing, or one that shares too
 * and does not listen; without it any other use of the port is a conflict. A socket that is held
 * shares from then on, so that the node can bind beside it. */
static int hold(uint16_t port, bool share)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    bool held = (!share || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0) &&
                bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                (share || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
    if (!held) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* A given port. Connections of an earlier cluster may still be closing on it, which does not
 * matter; so first alone, then beside them. */
static bool hold_given(struct dev_port *to, uint16_t port, const char *what, uint32_t node)
{
    *to = (struct dev_port){.port = port, .held = hold(port, false)};
    if (to->held < 0 && errno == EADDRINUSE) {
        to->held = hold(port, true);
    }
    if (to->held < 0) {
        fprintf(stderr,
                "horkos dev: port %u of 127.0.0.1, for the %s of node %u: %s; choose others with "
                "--base-port, or --base-port 0\n",
                (unsigned)port, what, node, strerror(errno));
    }
    return to->held >= 0;
}

static bool hold_free(struct dev_port *to, uint32_t *index, uint32_t *tries)
{
    uint32_t low = 0;
    uint32_t high = 0;
    kernel_range(&low, &high);
    for (; *tries > 0; --*tries) {
        uint16_t port = dev_port_at((*index)++, low, high);
        int fd = hold(port, false);
        if (fd >= 0) {
            *to = (struct dev_port){.port = port, .held = fd};
            return true;
        }
    }
    fprintf(stderr, "horkos dev: no free port on 127.0.0.1: %s\n", strerror(errno));
    return false;
}

bool dev_ports_hold(struct dev_ports *ports, uint32_t nodes, uint16_t base, uint16_t peers_above)
{
    uint32_t low = 0;
    uint32_t high = 0;
    uint32_t index = 0;
    kernel_range(&low, &high);
    uint32_t tries = dev_port_count(low, high);
    ports->nodes = nodes;
    for (uint32_t node = 0; node <= DEV_NODES_MAX; node++) {
        ports->client[node].held = -1;
        ports->peer[node].held = -1;
    }
    if (base == 0) {
        if (getrandom(&index, sizeof index, 0) != (ssize_t)sizeof index) {
            index = (uint32_t)getpid();
        }
        index %= tries;
    }
    for (uint32_t kind = 0; kind < 2; kind++) {
        for (uint32_t node = 1; node <= nodes; node++) {
            struct dev_port *to = kind == 0 ? &ports->client[node] : &ports->peer[node];
            uint16_t given = (uint16_t)(base + node - 1 + kind * peers_above);
            bool held = base == 0 ? hold_free(to, &index, &tries)
                                  : hold_given(to, given, kind == 0 ? "clients" : "peers", node);
            if (!held) {
                dev_ports_release(ports);
                return false;
            }
        }
    }
    return true;
}

static void let_go(struct dev_port *port)
{
    if (port->held >= 0) {
        close(port->held);
    }
    port->held = -1;
}

void dev_ports_release_node(struct dev_ports *ports, uint32_t node)
{
    let_go(&ports->client[node]);
    let_go(&ports->peer[node]);
}

void dev_ports_release(struct dev_ports *ports)
{
    for (uint32_t node = 1; node <= ports->nodes; node++) {
        dev_ports_release_node(ports, node);
    }
}
