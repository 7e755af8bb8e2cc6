/* `horkos balance`: options, the port that clients connect to, and the end. */
#include "tools/balance.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/options.h"

#define NAME "balance"

static const char help[] =
    "usage: horkos balance --node HOST:PORT --node HOST:PORT... [OPTION...]\n"
    "\n"
    "Takes Redis clients and sends each command to the node that works on its key, so that\n"
    "transactions find their keys where they run (docs/TRANSACTIONS.md). Keys with the same {tag}\n"
    "go to the same node. Several balancers with the same nodes share what goes where.\n"
    "Runs until it gets SIGINT or SIGTERM. Exit status: 0 it was told to end, 1 it failed, 2 a\n"
    "wrong option.\n"
    "\n"
    "  --node HOST:PORT   where a node takes clients; once for each node, 1 to 64\n"
    "  --port P           where this takes clients (6380); 0: any free port, which is printed\n"
    "  --bind ADDRESS     an IPv4 address of this machine (127.0.0.1)\n"
    "  --map-space N      the space that holds what goes where, of engine hermes (0)\n"
    "  --clients N        connections at the same time (1000)\n"
    "  --command-max N    bytes of one command (16777216)\n"
    "  --period MS        between two looks at load and nodes (1000)\n"
    "  --password-file F  this file's first line is the balancer's own password at all nodes\n"
    "  --user NAME        of that password (default)\n"
    "  --help             this text\n"
    "\n"
    "INFO balance tells what it does. Clients say their own passwords (AUTH, HELLO).\n";

enum option_id {
    OPTION_NODE = 256,
    OPTION_PORT,
    OPTION_BIND,
    OPTION_SPACE,
    OPTION_CLIENTS,
    OPTION_COMMAND,
    OPTION_PERIOD,
    OPTION_PASSWORD,
    OPTION_USER,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"node", required_argument, NULL, OPTION_NODE},
    {"port", required_argument, NULL, OPTION_PORT},
    {"bind", required_argument, NULL, OPTION_BIND},
    {"map-space", required_argument, NULL, OPTION_SPACE},
    {"clients", required_argument, NULL, OPTION_CLIENTS},
    {"command-max", required_argument, NULL, OPTION_COMMAND},
    {"period", required_argument, NULL, OPTION_PERIOD},
    {"password-file", required_argument, NULL, OPTION_PASSWORD},
    {"user", required_argument, NULL, OPTION_USER},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

struct where {
    struct in_addr address;
    uint32_t port;
};

static bool take_node(struct balance *b, const char *text)
{
    const char *colon = strrchr(text, ':');
    uint32_t port = 0;
    if (b->nodes_n == BALANCE_NODES_MAX) {
        fprintf(stderr, "horkos balance: more than %u nodes\n", BALANCE_NODES_MAX);
        return false;
    }
    struct balance_node *node = &b->nodes[b->nodes_n];
    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof node->host) {
        fprintf(stderr, "horkos balance: --node: '%s' is not HOST:PORT\n", text);
        return false;
    }
    if (!options_u32(NAME, "--node", colon + 1, 1, 65535, &port)) {
        return false;
    }
    (void)snprintf(node->host, sizeof node->host, "%.*s", (int)(colon - text), text);
    (void)snprintf(node->name, sizeof node->name, "%.*s:%u", (int)(colon - text), text, port);
    node->port = (uint16_t)port;
    b->nodes_n++;
    return true;
}

static bool take(struct balance *b, struct where *where, int id, const char *text)
{
    switch (id) {
    case OPTION_NODE:
        return take_node(b, text);
    case OPTION_PORT:
        return options_u32(NAME, "--port", text, 0, 65535, &where->port);
    case OPTION_BIND:
        if (inet_pton(AF_INET, text, &where->address) != 1) {
            fprintf(stderr, "horkos balance: --bind: '%s' is no IPv4 address\n", text);
            return false;
        }
        return true;
    case OPTION_SPACE:
        return options_u32(NAME, "--map-space", text, 0, 15, &b->space);
    case OPTION_CLIENTS:
        return options_u32(NAME, "--clients", text, 1, 10000, &b->clients_max);
    case OPTION_COMMAND:
        return options_u32(NAME, "--command-max", text, 1024, 64u << 20, &b->command_bytes_max);
    case OPTION_PASSWORD:
        b->address.password = b->password;
        return options_password(NAME, text, b->password);
    case OPTION_USER:
        b->address.user = text;
        return true;
    default:
        return options_u32(NAME, "--period", text, 10, 60000, &b->period_ms);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct balance_node *)a)->name, ((const struct balance_node *)b)->name);
}

static int parse(int argc, char **argv, struct balance *b, struct where *where, bool *help_out)
{
    int id;
    optind = 0;
    while ((id = options_next(argc, argv, ":", long_options)) != -1) {
        if (id == OPTION_HELP) {
            fputs(help, stdout);
            *help_out = true;
            return STATUS_OK;
        }
        if (id == '?' || id == ':') {
            options_complain(NAME, id, argv, long_options);
            return STATUS_USAGE;
        }
        if (!take(b, where, id, optarg)) {
            return STATUS_USAGE;
        }
    }
    if (optind < argc || b->nodes_n == 0) {
        fprintf(stderr,
                optind < argc ? "horkos balance: '%s' is no option\n"
                              : "horkos balance: name the nodes with --node%s\n",
                optind < argc ? argv[optind] : "");
        return STATUS_USAGE;
    }
    if (b->address.user != NULL && b->address.password == NULL) {
        fprintf(stderr, "horkos balance: --user needs --password-file\n");
        return STATUS_USAGE;
    }
    qsort(b->nodes, b->nodes_n, sizeof *b->nodes, by_name);
    for (uint32_t i = 1; i < b->nodes_n; i++) {
        if (strcmp(b->nodes[i - 1].name, b->nodes[i].name) == 0) {
            fprintf(stderr, "horkos balance: node %s is named twice\n", b->nodes[i].name);
            return STATUS_USAGE;
        }
    }
    return STATUS_OK;
}

uint32_t balance_info(struct balance *b, char *text, uint32_t size)
{
    uint32_t groups[BALANCE_NODES_MAX] = {0};
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        uint8_t node = atomic_load_explicit(&b->groups[g], memory_order_relaxed);
        if (node < b->nodes_n) {
            groups[node]++;
        }
    }
    int n = snprintf(
        text, size,
        "# Balance\r\nmapped:%d\r\nconnected_clients:%u\r\n"
        "total_connections_received:%llu\r\nrejected_connections:%llu\r\n"
        "total_commands_processed:%llu\r\ngroups:%u\r\ngroups_moved:%llu\r\n"
        "exchanges_lost:%llu\r\n",
        atomic_load(&b->mapped), atomic_load(&b->clients),
        (unsigned long long)atomic_load(&b->accepted), (unsigned long long)atomic_load(&b->refused),
        (unsigned long long)atomic_load(&b->commands), BALANCE_GROUPS,
        (unsigned long long)atomic_load(&b->moves), (unsigned long long)atomic_load(&b->lost));
    for (uint32_t i = 0; i < b->nodes_n && n > 0 && (uint32_t)n < size; i++) {
        struct balance_node *node = &b->nodes[i];
        n += snprintf(text + n, size - (uint32_t)n,
                      "node%u:name=%.60s,up=%d,groups=%u,commands=%llu\r\n", i, node->name,
                      !atomic_load(&node->down), groups[i],
                      (unsigned long long)atomic_load(&node->commands));
    }
    return (uint32_t)n < size ? (uint32_t)n : size - 1;
}

static int listen_at(const struct where *where, uint16_t *port_out)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)where->port),
                            .sin_addr = where->address};
    socklen_t n = sizeof a;
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)(void *)&a, sizeof a) != 0 || listen(fd, 512) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&a, &n) != 0) {
        fprintf(stderr, "horkos balance: port %u: %s\n", where->port, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    *port_out = ntohs(a.sin_port);
    return fd;
}

static void take_client(struct balance *b, int listener)
{
    static const char full[] = "-ERR max number of clients reached\r\n";
    int one = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    atomic_fetch_add(&b->accepted, 1);
    if (atomic_load(&b->clients) >= b->clients_max || !balance_serve(b, fd)) {
        atomic_fetch_add(&b->refused, 1);
        (void)send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)close(fd);
    }
}

static int run(struct balance *b, int listener, int signals)
{
    pthread_t keeper;
    if (pthread_create(&keeper, NULL, balance_keep, b) != 0) {
        return STATUS_FAILED;
    }
    struct pollfd fds[2] = {{.fd = listener, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    while (poll(fds, 2, -1) > 0 && (fds[1].revents & POLLIN) == 0) {
        take_client(b, listener);
    }
    atomic_store(&b->stop, true);
    (void)pthread_join(keeper, NULL);
    /* Clients look once a second. acquire: the last thing that a client's thread does. */
    struct timespec t = {.tv_nsec = 10000000};
    for (uint32_t i = 0; i < 1500 && atomic_load(&b->clients) > 0; i++) {
        (void)nanosleep(&t, NULL);
    }
    return STATUS_OK;
}

int balance_command(int argc, char **argv)
{
    struct where where = {.port = 6380, .address.s_addr = htonl(INADDR_LOOPBACK)};
    bool helped = false;
    sigset_t ends;
    uint16_t port;
    struct balance *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return STATUS_FAILED;
    }
    b->clients_max = 1000;
    b->command_bytes_max = 16u << 20;
    b->period_ms = 1000;
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        atomic_init(&b->groups[g], BALANCE_NOBODY);
    }
    int status = parse(argc, argv, b, &where, &helped);
    if (status != STATUS_OK || helped) {
        free(b);
        return status;
    }
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
    int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    int listener = listen_at(&where, &port);
    status = STATUS_FAILED;
    if (listener >= 0 && signals >= 0) {
        printf("listening on port %u for %u nodes\n", port, b->nodes_n);
        (void)fflush(stdout);
        status = run(b, listener, signals);
    }
    (void)close(listener);
    (void)close(signals);
    if (atomic_load(&b->clients) == 0) {
        free(b); /* else the process ends with threads that use it */
    }
    return status;
}
