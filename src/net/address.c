#include "net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "net/gate.h"

static const char unix_prefix[] = "unix:";
#define UNIX_PREFIX (sizeof unix_prefix - 1)

static bool port_valid(const char *text)
{
    uint32_t port = 0;
    if (text[0] == '\0' || text[0] == '0') {
        return false;
    }
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9') {
            return false;
        }
        port = port * 10u + (uint32_t)(*p - '0');
        if (port > 65535u) {
            return false;
        }
    }
    return true;
}

/* Letters, digits, dots, hyphens and underscores are all that a name or an IPv4 number holds. */
static bool name_valid(const char *host, size_t n)
{
    if (n == 0 || n >= ADDRESS_HOST_MAX) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        char c = host[i];
        bool alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alphanumeric && c != '.' && c != '-' && c != '_') {
            return false;
        }
    }
    return true;
}

static const char *split_unix(const char *path, struct address_parts *parts)
{
    struct sockaddr_un un;
    if (path[0] != '/') {
        return "the path behind unix: must begin with /";
    }
    if (strlen(path) >= sizeof un.sun_path) {
        return "the path of a unix socket has at most 107 bytes";
    }
    parts->kind = ADDRESS_UNIX;
    (void)snprintf(parts->host, sizeof parts->host, "%s", path);
    parts->port[0] = '\0';
    return NULL;
}

const char *address_split(const char *text, struct address_parts *parts_out)
{
    struct in6_addr v6;
    memset(parts_out, 0, sizeof *parts_out);
    if (strlen(text) >= GATE_ADDRESS_MAX) {
        return "an address has at most 279 bytes";
    }
    if (strncmp(text, unix_prefix, UNIX_PREFIX) == 0) {
        return split_unix(text + UNIX_PREFIX, parts_out);
    }
    const char *colon = strrchr(text, ':');
    if (colon == NULL) {
        return "the port is missing: host:port, [v6]:port or unix:/path";
    }
    if (!port_valid(colon + 1)) {
        return "the port must be 1 to 65535";
    }
    const char *host = text;
    size_t n = (size_t)(colon - text);
    bool bracketed = n >= 2 && host[0] == '[' && host[n - 1] == ']';
    if (bracketed) {
        host++;
        n -= 2;
    }
    if (n >= ADDRESS_HOST_MAX) {
        return "a host has at most 255 bytes";
    }
    memcpy(parts_out->host, host, n);
    parts_out->host[n] = '\0';
    if (bracketed && inet_pton(AF_INET6, parts_out->host, &v6) != 1) {
        return "between the brackets must be an IPv6 address in numbers";
    }
    if (!bracketed && !name_valid(parts_out->host, n)) {
        return memchr(host, ':', n) != NULL ? "an IPv6 address stands in brackets: [v6]:port"
                                            : "the host must be a name or an address in numbers";
    }
    parts_out->kind = ADDRESS_INET;
    (void)snprintf(parts_out->port, sizeof parts_out->port, "%.7s", colon + 1);
    return NULL;
}

const char *gate_address_invalid(const char *text)
{
    struct address_parts parts;
    return address_split(text, &parts);
}

bool address_is_local(const char *text)
{
    struct address_parts parts;
    struct sockaddr_storage at;
    socklen_t n;
    if (address_split(text, &parts) != NULL) {
        return false;
    }
    if (parts.kind == ADDRESS_UNIX || strcmp(parts.host, "localhost") == 0) {
        return true;
    }
    if (!address_numeric(text, &at, &n)) {
        return false;
    }
    if (at.ss_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)(const void *)&at)->sin_addr.s_addr) >> 24 == 127;
    }
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)&at)->sin6_addr);
}

static const char *resolve(const struct address_parts *parts, int flags,
                           struct sockaddr_storage *at_out, socklen_t *n_out)
{
    struct addrinfo *found = NULL;
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = flags | AI_NUMERICSERV,
    };
    int error = getaddrinfo(parts->host, parts->port, &hints, &found);
    if (error != 0) {
        return gai_strerror(error);
    }
    memset(at_out, 0, sizeof *at_out);
    memcpy(at_out, found->ai_addr, found->ai_addrlen);
    *n_out = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

bool address_numeric(const char *text, struct sockaddr_storage *at_out, socklen_t *n_out)
{
    struct address_parts parts;
    if (address_split(text, &parts) != NULL) {
        return false;
    }
    if (parts.kind == ADDRESS_INET) {
        return resolve(&parts, AI_NUMERICHOST, at_out, n_out) == NULL;
    }
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t n = strlen(parts.host);
    memcpy(un.sun_path, parts.host, n);
    memset(at_out, 0, sizeof *at_out);
    memcpy(at_out, &un, sizeof un);
    *n_out = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    return true;
}

const char *address_resolve(const char *text, struct sockaddr_storage *at_out, socklen_t *n_out)
{
    struct address_parts parts;
    const char *why = address_split(text, &parts);
    if (why != NULL || address_numeric(text, at_out, n_out)) {
        return why;
    }
    return resolve(&parts, 0, at_out, n_out);
}

void address_text(const struct sockaddr_storage *at, socklen_t n, char text_out[ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "";
    if (n < sizeof at->ss_family) {
        (void)snprintf(text_out, ADDRESS_TEXT_MAX, "?:0");
    } else if (at->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)at;
        (void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        (void)snprintf(text_out, ADDRESS_TEXT_MAX, "%s:%u", host, ntohs(in->sin_port));
    } else if (at->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)at;
        (void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        (void)snprintf(text_out, ADDRESS_TEXT_MAX, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)at;
        (void)snprintf(text_out, ADDRESS_TEXT_MAX, "%.107s:0", un->sun_path);
    }
}
