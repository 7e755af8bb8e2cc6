/* Where the gate listens. */
#include "net/gate_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"

#define BACKLOG 511
/* A unix socket is for its owner and the owner's group. */
#define UNIX_MODE 0770
/* How long a client may be silent before the system asks whether it is still there. */
#define KEEPALIVE_S 300

static const char *option_of(const struct gate_listener *listener)
{
    return listener->peers ? "[node] peer_listen or [peers]" : "[clients] listen";
}

static int complain(const struct gate_listener *listener, int error, char *error_out, uint32_t size)
{
    char hint[160] = "";
    const char *option = option_of(listener);
    switch (error) {
    case EADDRINUSE:
        (void)snprintf(hint, sizeof hint,
                       "; another process has this %s: stop it, or choose another in %s",
                       listener->address.text[0] == 'u' ? "path" : "port", option);
        break;
    case EADDRNOTAVAIL:
        (void)snprintf(hint, sizeof hint, "; this machine has no such address: correct it in %s",
                       option);
        break;
    case EACCES:
    case EPERM:
        (void)snprintf(hint, sizeof hint,
                       "; this user may not: choose a port from 1024 on, or a folder that may be "
                       "written, in %s",
                       option);
        break;
    case ENOENT:
        (void)snprintf(hint, sizeof hint, "; make the folder, or correct the path in %s", option);
        break;
    default:
        break;
    }
    (void)snprintf(error_out, size, "cannot listen on %s: %s%s", listener->address.text,
                   strerror(error), hint);
    return HK_ERR_IO;
}

/* A socket that a killed process left behind answers nobody and may go; anything else stays. */
static bool remove_stale(const struct sockaddr_storage *at, socklen_t n)
{
    struct stat about;
    const char *path = ((const struct sockaddr_un *)(const void *)at)->sun_path;
    if (lstat(path, &about) != 0) {
        return true;
    }
    if (!S_ISSOCK(about.st_mode)) {
        errno = EADDRINUSE;
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    bool stale = connect(fd, (const struct sockaddr *)at, n) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    if (!stale) {
        errno = EADDRINUSE;
        return false;
    }
    return unlink(path) == 0 || errno == ENOENT;
}

/* What sockets that are accepted inherit: a client whose machine is gone without a word is noticed
 * after some minutes, as with Redis. Those of peers have their own time-out. */
static int watch_over_clients(int fd)
{
    const struct {
        int level, option, value;
    } settings[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_S / 3},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (setsockopt(fd, settings[i].level, settings[i].option, &settings[i].value,
                       sizeof settings[i].value) != 0) {
            return errno;
        }
    }
    return 0;
}

/* 0, or errno. */
static int bind_and_listen(int fd, const struct sockaddr_storage *at, socklen_t n)
{
    int yes = 1;
    if (at->ss_family == AF_UNIX) {
        /* The mode of the socket becomes the mode of the file, so that nobody else connects between
         * bind and chmod. */
        if (!remove_stale(at, n) || fchmod(fd, UNIX_MODE) != 0) {
            return errno;
        }
    } else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) {
        return errno;
    }
    if (at->ss_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) != 0) {
        return errno;
    }
    if (bind(fd, (const struct sockaddr *)at, n) != 0) {
        return errno;
    }
    if (at->ss_family == AF_UNIX) {
        (void)chmod(((const struct sockaddr_un *)(const void *)at)->sun_path, UNIX_MODE);
    }
    return listen(fd, BACKLOG) == 0 ? 0 : errno;
}

static int open_one(struct gate *gate, const struct gate_address *address, bool peers,
                    char *error_out, uint32_t size)
{
    struct sockaddr_storage at;
    socklen_t n;
    HK_ASSERT(gate->listeners_n < GATE_LISTENERS_MAX);
    struct gate_listener *listener = &gate->listeners[gate->listeners_n];
    *listener = (struct gate_listener){
        .source = SOURCE_LISTENER, .fd = -1, .peers = peers, .address = *address};
    const char *why = address_resolve(address->text, &at, &n);
    if (why != NULL) {
        (void)snprintf(error_out, size, "cannot listen on %s: %s; correct it in %s", address->text,
                       why, option_of(listener));
        return HK_ERR_IO;
    }
    listener->fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0) {
        return complain(listener, errno, error_out, size);
    }
    int error = at.ss_family == AF_UNIX || peers ? 0 : watch_over_clients(listener->fd);
    error = error != 0 ? error : bind_and_listen(listener->fd, &at, n);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = listener};
    if (error == 0 && epoll_ctl(gate->epoll_fd, EPOLL_CTL_ADD, listener->fd, &event) != 0) {
        error = errno;
    }
    if (error != 0) {
        (void)close(listener->fd);
        listener->fd = -1;
        return complain(listener, error, error_out, size);
    }
    gate->listeners_n++;
    return HK_OK;
}

int gate_listen(struct gate *gate, char *error_out, uint32_t size)
{
    const struct gate_config *config = &gate->config;
    if (config->client_listens >= GATE_LISTENERS_MAX) {
        (void)snprintf(error_out, size, "too many addresses to listen on: at most %u",
                       GATE_LISTENERS_MAX - 1);
        return HK_ERR_IO;
    }
    for (uint32_t i = 0; i < config->client_listens; i++) {
        int error = open_one(gate, &config->client_listen[i], false, error_out, size);
        if (error != HK_OK) {
            return error;
        }
    }
    if (config->peer_listen.text[0] == '\0') {
        return HK_OK;
    }
    return open_one(gate, &config->peer_listen, true, error_out, size);
}

void gate_unlisten(struct gate *gate, bool clients_only)
{
    for (uint32_t i = 0; i < gate->listeners_n; i++) {
        struct gate_listener *listener = &gate->listeners[i];
        struct address_parts parts;
        if (listener->fd < 0 || (clients_only && listener->peers)) {
            continue;
        }
        (void)close(listener->fd);
        listener->fd = -1;
        if (address_split(listener->address.text, &parts) == NULL && parts.kind == ADDRESS_UNIX) {
            (void)unlink(parts.host);
        }
    }
}
