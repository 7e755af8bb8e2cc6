/* Ports of loopback that nobody listens on: the kernel's choice. All are held until the last one is
 * drawn, or it could give the same one twice. */
#ifndef HORKOS_TESTS_NET_FREE_PORTS_H
#define HORKOS_TESTS_NET_FREE_PORTS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

#define FREE_PORTS_MAX 32u

static inline void free_ports(uint32_t n, uint16_t *ports_out)
{
    int fds[FREE_PORTS_MAX];
    HK_ASSERT(n <= FREE_PORTS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t bytes = sizeof a;
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        HK_ASSERT(fds[i] >= 0 && bind(fds[i], (struct sockaddr *)(void *)&a, sizeof a) == 0 &&
                  getsockname(fds[i], (struct sockaddr *)(void *)&a, &bytes) == 0);
        ports_out[i] = ntohs(a.sin_port);
    }
    for (uint32_t i = 0; i < n; i++) {
        (void)close(fds[i]);
    }
}

#endif
