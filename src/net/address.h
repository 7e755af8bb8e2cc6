/* The text of an address taken apart: "host:port", "[v6]:port", "unix:/path". Nothing is looked up
 * here but what is written in numbers. */
#ifndef HORKOS_NET_ADDRESS_H
#define HORKOS_NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_HOST_MAX 256u
#define ADDRESS_TEXT_MAX 160u /* of a socket's own address, as address_text writes it */

enum address_kind { ADDRESS_INET, ADDRESS_UNIX };

struct address_parts {
    enum address_kind kind;
    char host[ADDRESS_HOST_MAX]; /* name or number, brackets taken off; of ADDRESS_UNIX: the path */
    char port[8];                /* decimal; "" for ADDRESS_UNIX */
};

/* NULL, or why the text is no address (static). */
const char *address_split(const char *text, struct address_parts *parts_out);
/* Whether only this machine can reach it: unix:, 127.0.0.0/8, ::1 or the name "localhost". */
bool address_is_local(const char *text);

/* The socket address, if the text is a unix path or its host is written in numbers; false if the
 * name must be looked up. The text must be an address. */
bool address_numeric(const char *text, struct sockaddr_storage *at_out, socklen_t *n_out);
/* The same with a name looked up by getaddrinfo, which may block for as long as the resolver likes.
 * NULL, or why it failed (static). */
const char *address_resolve(const char *text, struct sockaddr_storage *at_out, socklen_t *n_out);

/* "127.0.0.1:4242", "[::1]:4242", "/path:0" (as Redis names the clients of a unix socket). */
void address_text(const struct sockaddr_storage *at, socklen_t n, char text_out[ADDRESS_TEXT_MAX]);

#endif
