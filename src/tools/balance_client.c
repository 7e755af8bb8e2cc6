/* A client of the balancer: its commands are cut out of the stream, and those for one node that
 * stand together go there together; their replies are passed on as they come, counted. A
 * transaction (from WATCH or MULTI to its end) goes to one node, that of its first key. */
#include "tools/balance.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "resp/command.h"
#include "resp/parse.h"

#define STALL_MS 10000  /* nothing goes on for so long: the connection ends */
#define CONNECT_MS 1000 /* to a node */
#define PIECE_BYTES (64u * 1024u)
#define REPLAY_BYTES 1024u
/* What a client may send before it has said its password, where nodes ask for one: as a node. */
#define STRANGER_ARGUMENTS 10u
#define STRANGER_ARGUMENT_BYTES (16u * 1024u)
#define STRANGER_BYTES (256u * 1024u)
#define NOWHERE UINT32_MAX

static const char lost_words[] = "-UNKNOWN the node was lost while the command was under way\r\n";

/* What every node has to hear before anything else, in this order: HELLO may need AUTH. The last of
 * each that a node took. */
enum { SAID_AUTH, SAID_HELLO, SAID_SELECT, SAID_KINDS, SAID_RESET = SAID_KINDS, SAID_NOTHING };
static const char *const said_names[SAID_NOTHING] = {"auth", "hello", "select", "reset"};

struct replay {
    uint8_t at[REPLAY_BYTES];
    uint32_t n; /* 0: none */
};

/* A connection to a node. */
struct upstream {
    int fd;     /* -1: none */
    bool heard; /* all replays */
};

struct client {
    struct balance *b;
    int fd;
    uint8_t *in;
    uint32_t in_n, in_max;
    struct resp_parser parser;
    struct resp_limits limits;
    struct random random;
    struct upstream nodes[BALANCE_NODES_MAX];
    struct replay replays[SAID_KINDS];
    bool known;    /* it has said a password, or none is wanted */
    uint8_t reply; /* the first byte of the reply that came last; 0: none did */
    uint32_t home; /* of commands without a key */
    uint32_t pin;  /* of a transaction; NOWHERE: none */
    bool multi;    /* MULTI was said */
    bool owed;     /* ... and answered here, for its node is not known yet */
    bool over;

    /* Commands that go together, one behind the other. */
    struct bytes batch;
    uint32_t count, dest;
};

/* ---- Bytes ---- */

static bool send_all(struct client *c, const void *at, uint32_t n)
{
    const uint8_t *rest = at;
    while (n > 0 && !c->over) {
        struct pollfd p = {.fd = c->fd, .events = POLLOUT};
        ssize_t some = send(c->fd, rest, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (some > 0) {
            rest += some;
            n -= (uint32_t)some;
        } else if (errno != EAGAIN || poll(&p, 1, STALL_MS) <= 0) {
            c->over = true;
        }
    }
    return !c->over;
}

static bool say(struct client *c, const char *words)
{
    return send_all(c, words, (uint32_t)strlen(words));
}

/* ---- Nodes ---- */

static int connect_to(const struct balance_node *node)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];
    int fd = -1;
    (void)snprintf(port, sizeof port, "%u", node->port);
    if (getaddrinfo(node->host, port, &hints, &found) != 0) {
        return -1;
    }
    for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        int err = 0;
        socklen_t n = sizeof err;
        if (fd >= 0 && ((connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) ||
                        poll(&p, 1, CONNECT_MS) != 1 ||
                        getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) != 0 || err != 0)) {
            (void)close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void hang_up(struct client *c, uint32_t node)
{
    if (c->nodes[node].fd >= 0) {
        (void)close(c->nodes[node].fd);
    }
    c->nodes[node] = (struct upstream){.fd = -1};
}

/* What the node has to hear before the commands, in front of them: AUTH, HELLO and SELECT, and
 * MULTI. Their replies are nobody's. */
struct prefix {
    uint8_t at[SAID_KINDS * REPLAY_BYTES + 32];
    uint32_t n, replies;
};

static void add_prefix(struct prefix *p, const void *at, uint32_t n)
{
    memcpy(p->at + p->n, at, n);
    p->n += n;
    p->replies++;
}

static void make_prefix(struct client *c, uint32_t node, bool multi, struct prefix *p)
{
    struct upstream *u = &c->nodes[node];
    *p = (struct prefix){.n = 0};
    for (uint32_t i = 0; i < SAID_KINDS && !u->heard; i++) {
        if (c->replays[i].n > 0) {
            add_prefix(p, c->replays[i].at, c->replays[i].n);
        }
    }
    u->heard = true;
    if (multi) {
        static const char words[] = "*1\r\n$5\r\nMULTI\r\n";
        add_prefix(p, words, sizeof words - 1);
    }
}

/* Passes on what has come from the node. False: it broke off. */
static bool take_replies(struct client *c, uint32_t node, struct balance_reply *reply,
                         uint32_t *unheard, uint32_t *expected)
{
    uint8_t piece[PIECE_BYTES];
    ssize_t n = recv(c->nodes[node].fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n <= 0) {
        return n < 0 && errno == EAGAIN;
    }
    struct bytes rest = bytes_of(piece, (uint32_t)n);
    while (rest.n > 0 && *unheard + *expected > 0) {
        uint32_t used;
        bool begins = reply->left == 0 && reply->skip == 0 && !reply->in_line;
        c->reply = begins && *unheard == 0 ? rest.at[0] : c->reply;
        enum balance_fed fed = balance_reply_feed(reply, rest, &used);
        if (fed == BALANCE_BROKEN || (*unheard == 0 && !send_all(c, rest.at, used))) {
            return false;
        }
        rest = bytes_of(rest.at + used, rest.n - used);
        if (fed == BALANCE_WHOLE) {
            *(*unheard > 0 ? unheard : expected) -= 1;
        }
    }
    return rest.n == 0;
}

/* Sends both and takes all replies; returns how many of `expected` did not come. */
static uint32_t exchange(struct client *c, uint32_t node, const struct prefix *p,
                         struct bytes commands, uint32_t expected, bool *torn_out)
{
    struct balance_reply reply = {.left = 0};
    uint32_t unheard = p->replies;
    uint32_t sent = 0;
    uint32_t total = p->n + commands.n;
    while (unheard + expected > 0 && !c->over) {
        struct pollfd poll_of = {.fd = c->nodes[node].fd,
                                 .events = (short)(POLLIN | (sent < total ? POLLOUT : 0))};
        if (poll(&poll_of, 1, STALL_MS) <= 0) {
            break;
        }
        if ((poll_of.revents & POLLOUT) != 0) {
            bool first = sent < p->n;
            const uint8_t *at = first ? p->at + sent : commands.at + (sent - p->n);
            ssize_t n = send(c->nodes[node].fd, at, first ? p->n - sent : total - sent,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && errno != EAGAIN) {
                break;
            }
            sent += n > 0 ? (uint32_t)n : 0;
        }
        if ((poll_of.revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
            !take_replies(c, node, &reply, &unheard, &expected)) {
            break;
        }
    }
    *torn_out = unheard == 0 && (reply.left > 0 || reply.skip > 0 || reply.in_line);
    return unheard + expected > 0 ? expected + (unheard > 0 && expected == 0) : 0;
}

/* The commands that stand together go to their node. */
static void flush(struct client *c)
{
    uint32_t count = c->count;
    struct prefix prefix;
    bool torn = false;
    if (count == 0) {
        return;
    }
    c->count = 0;
    struct upstream *u = &c->nodes[c->dest];
    struct balance_node *node = &c->b->nodes[c->dest];
    if (u->fd < 0) {
        u->fd = connect_to(node);
    }
    if (u->fd < 0) {
        atomic_store_explicit(&node->down, true, memory_order_relaxed);
        c->pin = NOWHERE;
        c->multi = c->owed = false;
        for (; count > 0; count--) {
            (void)say(c, "-CLUSTERDOWN the node for this key cannot be reached\r\n");
        }
        return;
    }
    make_prefix(c, c->dest, c->owed, &prefix);
    c->owed = false;
    atomic_fetch_add_explicit(&node->commands, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->b->commands, count, memory_order_relaxed);
    uint32_t missing = exchange(c, c->dest, &prefix, c->batch, count, &torn);
    if (missing > 0) {
        hang_up(c, c->dest);
        atomic_fetch_add_explicit(&c->b->lost, 1, memory_order_relaxed);
        c->over = c->over || torn || c->pin != NOWHERE;
        for (; missing > 0 && !torn; missing--) {
            (void)send_all(c, lost_words, sizeof lost_words - 1);
        }
        c->pin = NOWHERE;
    }
}

/* ---- Commands ---- */

static bool is(struct bytes word, const char *name)
{
    return word.n == strlen(name) && strncasecmp((const char *)word.at, name, word.n) == 0;
}

/* Answers here, in its place among the others. */
static void answer(struct client *c, const char *words)
{
    flush(c);
    (void)say(c, words);
}

static void info(struct client *c)
{
    char text[8192];
    char head[32];
    uint32_t n = balance_info(c->b, text, sizeof text);
    flush(c);
    (void)snprintf(head, sizeof head, "$%u\r\n", n);
    if (say(c, head) && send_all(c, text, n)) {
        (void)say(c, "\r\n");
    }
}

/* The command, whose words were perhaps unescaped where they stand, as an array; to be freed. */
static struct bytes as_array(struct client *c, struct bytes input)
{
    size_t n = 32;
    for (uint32_t i = 0; i < c->parser.n; i++) {
        n += resp_argument(&c->parser, input, i).n + 24u;
    }
    uint8_t *text = malloc(n);
    if (text == NULL) {
        c->over = true;
        return bytes_of(NULL, 0);
    }
    size_t used = (size_t)snprintf((char *)text, n, "*%u\r\n", c->parser.n);
    for (uint32_t i = 0; i < c->parser.n; i++) {
        struct bytes word = resp_argument(&c->parser, input, i);
        used += (size_t)snprintf((char *)text + used, n - used, "$%u\r\n", word.n);
        if (word.n > 0) {
            memcpy(text + used, word.at, word.n);
        }
        memcpy(text + used + word.n, "\r\n", 2);
        used += word.n + 2u;
    }
    return bytes_of(text, (uint32_t)used);
}

static void free_array(struct bytes array)
{
    free((void *)(uintptr_t)array.at);
}

static void become_known(struct client *c)
{
    c->known = true;
    c->limits = (struct resp_limits){.bulk_bytes_max = c->b->command_bytes_max,
                                     .arguments_max = 65536,
                                     .query_bytes_max = c->b->command_bytes_max};
}

/* A node has taken it: what the others know of the client is old, so they hear all of it anew when
 * they are needed. */
static void remember(struct client *c, uint32_t kind, struct bytes array, uint32_t node)
{
    if (kind == SAID_RESET) {
        memset(c->replays, 0, sizeof c->replays);
        c->known = c->b->address.password == NULL;
    } else {
        memcpy(c->replays[kind].at, array.at, array.n);
        c->replays[kind].n = array.n;
        if (kind != SAID_SELECT && !c->known) {
            become_known(c); /* HELLO without a password is taken from nobody else */
        }
    }
    for (uint32_t i = 0; i < c->b->nodes_n; i++) {
        if (i != node) {
            hang_up(c, i);
        }
    }
}

/* AUTH, HELLO, SELECT, RESET: one node says whether it takes it, and what is refused changes
 * nothing at the others either. */
static void introduce(struct client *c, uint32_t kind, struct bytes input)
{
    uint32_t node = c->pin != NOWHERE ? c->pin : c->home;
    struct bytes array = as_array(c, input);
    flush(c);
    if (array.n > REPLAY_BYTES) {
        (void)say(c, "-ERR too long for a balancer\r\n");
    } else if (array.n > 0 && !c->over) {
        if (kind == SAID_RESET) {
            c->pin = NOWHERE;
            c->multi = c->owed = false;
        }
        c->dest = node;
        c->batch = array;
        c->count = 1;
        c->reply = 0;
        flush(c);
        if (c->reply != 0 && c->reply != '-' && c->nodes[node].fd >= 0) {
            remember(c, kind, array, node);
        }
    }
    free_array(array);
}

static uint32_t introduction(struct bytes name)
{
    uint32_t kind = 0;
    while (kind < SAID_NOTHING && !is(name, said_names[kind])) {
        kind++;
    }
    return kind;
}

/* Where the command goes, its key's node or the client's home; NOWHERE: it was answered. */
static uint32_t route(struct client *c, struct bytes name, uint32_t words, struct bytes input)
{
    uint32_t kind = introduction(name);
    const struct resp_command *command = resp_command_find(name);
    bool keyed = command != NULL && command->first_key > 0 && words > (uint32_t)command->first_key;
    if (atomic_load_explicit(&c->b->nodes[c->home].down, memory_order_relaxed)) {
        c->home = balance_any(c->b, &c->random);
    }
    if (kind < SAID_NOTHING && (!c->multi || kind == SAID_RESET)) {
        introduce(c, kind, input);
        return NOWHERE;
    }
    if (!c->known) {
        return c->home; /* which says that it wants a password */
    }
    if (is(name, "info") && words == 2 && is(resp_argument(&c->parser, input, 1), "balance")) {
        info(c);
        return NOWHERE;
    }
    if (is(name, "client") && words >= 2 && is(resp_argument(&c->parser, input, 1), "reply")) {
        answer(c, "-ERR a balancer counts replies: CLIENT REPLY is not for its clients\r\n");
        return NOWHERE;
    }
    if (c->pin != NOWHERE) {
        return c->pin;
    }
    if (is(name, "multi") && !c->multi) {
        answer(c, "+OK\r\n");
        c->multi = c->owed = true;
        return NOWHERE;
    }
    if (c->owed && (is(name, "exec") || is(name, "discard"))) {
        c->multi = c->owed = false;
        answer(c, is(name, "exec") ? "*0\r\n" : "+OK\r\n");
        return NOWHERE;
    }
    uint32_t dest = c->home;
    if (keyed) {
        struct bytes key = resp_argument(&c->parser, input, (uint32_t)command->first_key);
        dest = balance_route(c->b, balance_group(key), &c->random);
    }
    if (c->multi || is(name, "watch")) {
        c->pin = dest;
    }
    return dest;
}

/* What ends a transaction, or does not begin one. */
static void after(struct client *c, struct bytes name)
{
    if (is(name, "multi")) {
        c->multi = true;
    } else if (is(name, "exec") || is(name, "discard") || (is(name, "unwatch") && !c->multi)) {
        flush(c);
        c->pin = NOWHERE;
        c->multi = c->owed = false;
    }
    if (is(name, "quit")) {
        flush(c);
        c->over = true;
    }
}

static void command(struct client *c, uint32_t at, uint32_t bytes)
{
    bool is_inline = c->in[at] != '*';
    struct bytes input = bytes_of(c->in + at, c->in_n - at);
    struct bytes name = resp_argument(&c->parser, input, 0);
    bool owed = c->owed;
    uint32_t dest = route(c, name, c->parser.n, input);
    if (dest == NOWHERE) {
        return;
    }
    /* MULTI stands in front of the first command that has a node. */
    bool joins = c->count > 0 && dest == c->dest && !owed && !is_inline &&
                 c->batch.at + c->batch.n == input.at;
    if (!joins) {
        flush(c);
        c->batch = bytes_of(input.at, 0);
    }
    c->dest = dest;
    c->batch.n += bytes;
    c->count++;
    if (is_inline) {
        struct bytes array = as_array(c, input);
        c->batch = array;
        c->count = array.n > 0;
        flush(c);
        free_array(array);
    }
    after(c, name);
}

/* ---- The stream ---- */

static void take_commands(struct client *c)
{
    uint32_t at = 0;
    while (!c->over) {
        uint32_t used = 0;
        enum resp_parsed parsed =
            resp_parse(&c->parser, &c->limits, c->in + at, c->in_n - at, &used);
        if (parsed == RESP_PARTIAL) {
            break;
        }
        if (parsed == RESP_MALFORMED) {
            char words[160];
            flush(c);
            (void)snprintf(words, sizeof words, "-ERR %s\r\n", c->parser.error);
            (void)say(c, words);
            c->over = true;
            break;
        }
        if (c->parser.n > 0) {
            command(c, at, used);
        }
        at += used;
        resp_parser_reset(&c->parser);
    }
    flush(c);
    memmove(c->in, c->in + at, c->in_n - at);
    c->in_n -= at;
}

static bool room(struct client *c)
{
    uint32_t most = c->limits.query_bytes_max + PIECE_BYTES;
    if (c->in_max - c->in_n >= PIECE_BYTES / 4) {
        return true;
    }
    uint32_t n = c->in_max < PIECE_BYTES ? PIECE_BYTES : 2 * c->in_max;
    n = n < most ? n : most;
    uint8_t *in = n > c->in_n ? realloc(c->in, n) : NULL;
    if (in == NULL) {
        return c->in_max > c->in_n;
    }
    c->in = in;
    c->in_max = n;
    return true;
}

static void *serve(void *argument)
{
    struct client *c = argument;
    while (!c->over && room(c)) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        if (poll(&p, 1, 1000) == 0) {
            c->over = atomic_load_explicit(&c->b->stop, memory_order_relaxed);
            continue;
        }
        ssize_t n = recv(c->fd, c->in + c->in_n, c->in_max - c->in_n, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            break;
        }
        c->in_n += n > 0 ? (uint32_t)n : 0;
        take_commands(c);
    }
    for (uint32_t i = 0; i < c->b->nodes_n; i++) {
        hang_up(c, i);
    }
    (void)close(c->fd);
    resp_parser_deinit(&c->parser);
    free(c->in);
    atomic_fetch_sub_explicit(&c->b->clients, 1, memory_order_release);
    free(c);
    return NULL;
}

bool balance_serve(struct balance *b, int fd)
{
    pthread_t thread;
    pthread_attr_t detached;
    struct client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return false;
    }
    *c = (struct client){.b = b,
                         .fd = fd,
                         .limits = {.bulk_bytes_max = STRANGER_ARGUMENT_BYTES,
                                    .arguments_max = STRANGER_ARGUMENTS,
                                    .query_bytes_max = STRANGER_BYTES},
                         .pin = NOWHERE};
    if (b->address.password == NULL) {
        become_known(c);
    }
    random_init(&c->random, (uint64_t)(uintptr_t)c ^ (uint64_t)fd << 32);
    resp_parser_init(&c->parser);
    for (uint32_t i = 0; i < BALANCE_NODES_MAX; i++) {
        c->nodes[i].fd = -1;
    }
    c->home = balance_any(b, &c->random);
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add_explicit(&b->clients, 1, memory_order_relaxed);
    bool made = pthread_create(&thread, &detached, serve, c) == 0;
    (void)pthread_attr_destroy(&detached);
    if (!made) {
        atomic_fetch_sub_explicit(&b->clients, 1, memory_order_relaxed);
        resp_parser_deinit(&c->parser);
        free(c);
    }
    return made;
}
