#include "tools/resp_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

void resp_client_init(struct resp_client *client)
{
    *client = (struct resp_client){.fd = -1};
}

static void disconnect(struct resp_client *client)
{
    if (client->fd >= 0) {
        close(client->fd);
    }
    client->fd = -1;
    client->buffer_n = 0;
}

void resp_client_deinit(struct resp_client *client)
{
    disconnect(client);
    free(client->buffer);
    client->buffer = NULL;
}

__attribute__((format(printf, 3, 4))) static int fail(struct resp_client *client, int err,
                                                      const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(client->why, sizeof client->why, format, list);
    va_end(list);
    disconnect(client);
    return err;
}

/* Waits until the socket is ready for `events` or the time is up. */
static int wait_for(struct resp_client *client, short events, uint64_t deadline_us)
{
    for (;;) {
        uint64_t now_us = clock_boot_us();
        if (now_us >= deadline_us) {
            return fail(client, HK_ERR_IO, "%s does not answer in time", client->where);
        }
        struct pollfd waited = {.fd = client->fd, .events = events};
        int n = poll(&waited, 1, (int)((deadline_us - now_us) / 1000 + 1));
        if (n > 0) {
            return HK_OK;
        }
        if (n < 0 && errno != EINTR) {
            return fail(client, HK_ERR_IO, "%s: %s", client->where, strerror(errno));
        }
    }
}

static int connect_one(struct resp_client *client, const struct sockaddr *address, socklen_t length,
                       uint64_t deadline_us)
{
    int one = 1;
    int error = 0;
    socklen_t size = sizeof error;
    client->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0) {
        return fail(client, HK_ERR_IO, "%s: %s", client->where, strerror(errno));
    }
    if (connect(client->fd, address, length) != 0) {
        if (errno != EINPROGRESS) {
            return fail(client, HK_ERR_IO, "%s: %s", client->where, strerror(errno));
        }
        int err = wait_for(client, POLLOUT, deadline_us);
        if (err != HK_OK) {
            return err;
        }
        if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
            return fail(client, HK_ERR_IO, "%s: %s", client->where,
                        strerror(error != 0 ? error : errno));
        }
    }
    if (address->sa_family != AF_UNIX) {
        (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return HK_OK;
}

static int connect_unix(struct resp_client *client, const char *path, uint64_t deadline_us)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(client->where, sizeof client->where, "%s", path);
    if (path[0] == '\0' || strlen(path) >= sizeof address.sun_path) {
        return fail(client, HK_ERR_INVALID, "%s: a socket's path has 1 to %zu bytes", path,
                    sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    return connect_one(client, (const struct sockaddr *)&address, sizeof address, deadline_us);
}

static int connect_tcp(struct resp_client *client, const char *host, uint16_t port,
                       uint64_t deadline_us)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    snprintf(client->where, sizeof client->where, strchr(host, ':') == NULL ? "%s:%u" : "[%s]:%u",
             host, (unsigned)port);
    int err = getaddrinfo(host, service, &hints, &found);
    if (err != 0) {
        return fail(client, HK_ERR_INVALID, "%s: %s", client->where, gai_strerror(err));
    }
    err = HK_ERR_IO;
    for (const struct addrinfo *one = found; one != NULL && err != HK_OK; one = one->ai_next) {
        err = connect_one(client, one->ai_addr, one->ai_addrlen, deadline_us);
    }
    freeaddrinfo(found);
    return err;
}

int resp_client_connect(struct resp_client *client, const struct resp_client_target *target,
                        uint32_t timeout_ms)
{
    uint64_t deadline_us = clock_boot_us() + (uint64_t)timeout_ms * 1000;
    disconnect(client);
    if (target->socket_path != NULL) {
        return connect_unix(client, target->socket_path, deadline_us);
    }
    return connect_tcp(client, target->host, target->port, deadline_us);
}

static int send_all(struct resp_client *client, struct bytes bytes, uint64_t deadline_us)
{
    for (uint32_t sent = 0; sent < bytes.n;) {
        ssize_t n = send(client->fd, bytes.at + sent, bytes.n - sent, MSG_NOSIGNAL);
        if (n >= 0) {
            sent += (uint32_t)n;
        } else if (errno == EAGAIN) {
            int err = wait_for(client, POLLOUT, deadline_us);
            if (err != HK_OK) {
                return err;
            }
        } else if (errno != EINTR) {
            return fail(client, HK_ERR_IO, "%s: %s", client->where, strerror(errno));
        }
    }
    return HK_OK;
}

static int send_command(struct resp_client *client, uint32_t n, const struct bytes *args,
                        uint64_t deadline_us)
{
    char head[32];
    int length = snprintf(head, sizeof head, "*%u\r\n", n);
    uint64_t total = (uint64_t)length;
    for (uint32_t i = 0; i < n; i++) {
        total += args[i].n + sizeof head;
    }
    uint8_t *request = total > UINT32_MAX ? NULL : malloc((size_t)total);
    if (request == NULL) {
        return fail(client, HK_ERR_NOMEM, "no memory for a request");
    }
    memcpy(request, head, (size_t)length);
    uint32_t at = (uint32_t)length;
    for (uint32_t i = 0; i < n; i++) {
        length = snprintf(head, sizeof head, "$%u\r\n", args[i].n);
        memcpy(request + at, head, (size_t)length);
        at += (uint32_t)length;
        if (args[i].n > 0) {
            memcpy(request + at, args[i].at, args[i].n);
        }
        at += args[i].n;
        request[at++] = '\r';
        request[at++] = '\n';
    }
    int err = send_all(client, bytes_of(request, at), deadline_us);
    free(request);
    return err;
}

/* Bounded: the parser refuses what would need more. */
static int make_room(struct resp_client *client)
{
    if (client->buffer_n < client->buffer_max) {
        return HK_OK;
    }
    uint32_t size = client->buffer_max == 0 ? 4096 : client->buffer_max * 2;
    uint8_t *buffer = realloc(client->buffer, size);
    if (buffer == NULL) {
        return fail(client, HK_ERR_NOMEM, "no memory for a reply");
    }
    client->buffer = buffer;
    client->buffer_max = size;
    return HK_OK;
}

static int receive_some(struct resp_client *client, uint64_t deadline_us)
{
    int err = make_room(client);
    while (err == HK_OK) {
        ssize_t n = recv(client->fd, client->buffer + client->buffer_n,
                         client->buffer_max - client->buffer_n, 0);
        if (n > 0) {
            client->buffer_n += (uint32_t)n;
            return HK_OK;
        }
        if (n == 0) {
            return fail(client, HK_ERR_IO, "%s closed the connection", client->where);
        }
        if (errno == EAGAIN) {
            err = wait_for(client, POLLIN, deadline_us);
        } else if (errno != EINTR) {
            err = fail(client, HK_ERR_IO, "%s: %s", client->where, strerror(errno));
        }
    }
    return err;
}

int resp_client_call(struct resp_client *client, uint32_t n, const struct bytes *args,
                     uint32_t timeout_ms, struct resp_client_reply *reply_out)
{
    uint64_t deadline_us = clock_boot_us() + (uint64_t)timeout_ms * 1000;
    if (client->fd < 0) {
        return fail(client, HK_ERR_IO, "not connected");
    }
    client->buffer_n = 0;
    int err = send_command(client, n, args, deadline_us);
    while (err == HK_OK) {
        err = receive_some(client, deadline_us);
        if (err != HK_OK) {
            break;
        }
        uint32_t used = 0;
        err = resp_client_parse(bytes_of(client->buffer, client->buffer_n), reply_out, &used);
        if (err == HK_OK && used == client->buffer_n) {
            return HK_OK;
        }
        /* More than one reply to one request would answer the next one wrongly. */
        if (err != HK_ERR_NOTFOUND) {
            return fail(client, HK_ERR_CORRUPT, "%s does not answer in the Redis protocol",
                        client->where);
        }
        err = HK_OK;
    }
    return err;
}
