/* Rings between two processes of one host. A connection that both sides want over shared memory
 * begins as a socket that has finished its handshake. Over it the caller says where its segment is,
 * and the responder whether it has it; if not, the connection goes on over tcp. Else the socket
 * stays: a byte on it wakes who sleeps, its end is the peer's end. docs/NET.md, "Segments".
 *
 * The segment is a memfd of the caller's (memfd.h). Between the token and the area each side may
 * say where a region is that it exposes (port_verbs.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/exposure.h"
#include "net/memfd.h"
#include "net/port_internal.h"

#define RING_BYTES (256u * 1024u)
#define NAME "horkos rings"
/* The token stands at its start, the area on the next page. */
#define AREA_AT 4096u
#define TOKEN_BYTES 16u
#define EXPOSURES_AT 64u /* one of either side */

/* Both messages, docs/NET.md. */
#define MESSAGE_BYTES 64u
#define MESSAGE_MAGIC 0x4d534b48u /* "HKSM" in little-endian order */
#define MAC_BYTES 16u
enum {
    AT_MAGIC = 0,
    AT_TYPE = 4,
    AT_RING_BYTES = 8,
    AT_PROCESS = 12,
    AT_DESCRIPTOR = 16,
    AT_TOKEN = 24,
    AT_MAC = MESSAGE_BYTES - MAC_BYTES,
};
enum message_type { TYPE_OFFER = 1, TYPE_TAKEN, TYPE_REFUSED };

struct segment {
    uint8_t *at; /* mapped */
    uint64_t bytes;
};

struct opening {
    struct handshake_peer peer;
    int fd; /* caller: of the segment, until it is taken; -1: none */
    uint32_t got_bytes;
    uint8_t got[MESSAGE_BYTES];
};

/* ---- The segment ---- */

static uint64_t segment_bytes(uint32_t ring_bytes)
{
    return (AREA_AT + shm_area_bytes(ring_bytes) + AREA_AT - 1u) / AREA_AT * AREA_AT;
}

static struct segment *segment_map(int fd, uint64_t bytes)
{
    struct segment *segment = calloc(1, sizeof(*segment));
    void *at = MAP_FAILED;
    if (segment != NULL) {
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        free(segment);
        return NULL;
    }
    segment->at = at;
    segment->bytes = bytes;
    return segment;
}

static void segment_unmap(struct segment *segment)
{
    if (segment != NULL) {
        (void)munmap(segment->at, segment->bytes);
        free(segment);
    }
}

static struct shm_area *area_of(const struct segment *segment)
{
    return (struct shm_area *)(void *)(segment->at + AREA_AT);
}

/* NULL: the system refuses; *fd_out is then -1. */
static struct segment *segment_make(int *fd_out)
{
    uint64_t bytes = segment_bytes(RING_BYTES);
    *fd_out = -1;
    int fd = memfd_make(NAME, bytes);
    if (fd < 0) {
        return NULL;
    }
    struct segment *segment = segment_map(fd, bytes);
    if (segment == NULL) {
        (void)close(fd);
        return NULL;
    }
    shm_area_init(area_of(segment));
    randombytes_buf(segment->at, TOKEN_BYTES);
    *fd_out = fd;
    return segment;
}

/* Opens what an offer names. NULL: *why_out says why not. */
static struct segment *segment_find(const uint8_t *offer, const char **why_out)
{
    uint32_t ring_bytes = get_u32(offer + AT_RING_BYTES);
    uint64_t bytes;
    *why_out = "the peer's offer cannot be";
    if (ring_bytes < SHM_RING_MIN || ring_bytes > SHM_RING_MAX ||
        (ring_bytes & (ring_bytes - 1)) != 0) {
        *why_out = ring_bytes == 0 ? "the peer has no memory to share" : *why_out;
        return NULL;
    }
    *why_out = "the peer runs on another host, as another user, or in another container";
    int fd = memfd_find(get_u32(offer + AT_PROCESS), get_u32(offer + AT_DESCRIPTOR), NAME, &bytes);
    if (fd < 0) {
        return NULL;
    }
    struct segment *segment = bytes == segment_bytes(ring_bytes) ? segment_map(fd, bytes) : NULL;
    (void)close(fd);
    /* A process of the same number on another host, whose node also offers rings. */
    if (segment != NULL && sodium_memcmp(segment->at, offer + AT_TOKEN, TOKEN_BYTES) != 0) {
        segment_unmap(segment);
        segment = NULL;
    }
    return segment;
}

/* ---- Regions that the sides expose ---- */

static struct exposure_place *place_of(const struct conn *conn, bool own)
{
    bool first = (conn->shm.own == &area_of(conn->segment)->side[0]) == own;
    return (struct exposure_place *)(void *)(conn->segment->at + EXPOSURES_AT) + (first ? 0 : 1);
}

void segment_expose(const struct conn *conn, const struct exposure *exposure)
{
    exposure_say(exposure, place_of(conn, true));
}

struct exposure *segment_exposed(const struct conn *conn)
{
    return exposure_find(place_of(conn, false));
}

/* ---- Messages ---- */

static bool say(struct conn *conn, uint8_t *message, enum message_type type)
{
    put_u32(message + AT_MAGIC, MESSAGE_MAGIC);
    message[AT_TYPE] = (uint8_t)type;
    (void)crypto_generichash(message + AT_MAC, MAC_BYTES, message, AT_MAC,
                             conn->opening->peer.keys.send, SESSION_KEY_BYTES);
    return stream_write(conn->stream, bytes_of(message, MESSAGE_BYTES));
}

static bool say_offer(struct conn *conn)
{
    uint8_t message[MESSAGE_BYTES] = {0};
    if (conn->segment != NULL) {
        put_u32(message + AT_RING_BYTES, RING_BYTES);
        put_u32(message + AT_PROCESS, (uint32_t)getpid());
        put_u32(message + AT_DESCRIPTOR, (uint32_t)conn->opening->fd);
        memcpy(message + AT_TOKEN, conn->segment->at, TOKEN_BYTES);
    }
    return say(conn, message, TYPE_OFFER);
}

/* 0: not a message of the peer's. */
static uint32_t type_of(const struct opening *opening)
{
    uint8_t mac[MAC_BYTES];
    (void)crypto_generichash(mac, MAC_BYTES, opening->got, AT_MAC, opening->peer.keys.receive,
                             SESSION_KEY_BYTES);
    bool genuine = sodium_memcmp(mac, opening->got + AT_MAC, MAC_BYTES) == 0 &&
                   get_u32(opening->got + AT_MAGIC) == MESSAGE_MAGIC;
    return genuine ? opening->got[AT_TYPE] : 0;
}

/* ---- Agreeing ---- */

static void opening_free(struct conn *conn)
{
    if (conn->opening != NULL) {
        if (conn->opening->fd >= 0) {
            (void)close(conn->opening->fd);
        }
        sodium_memzero(conn->opening, sizeof(*conn->opening));
        free(conn->opening);
        conn->opening = NULL;
    }
}

static bool stand_on_rings(struct conn *conn, uint32_t ring_bytes)
{
    struct handshake_peer peer = conn->opening->peer;
    struct shm_config config = {
        .ring_bytes = ring_bytes, .queue_max = conn->port->config.queue_max, .foreign = true};
    sodium_memzero(&peer.keys, sizeof(peer.keys));
    if (shm_init(&conn->shm, &config, area_of(conn->segment), peer.caller ? 0 : 1) != HK_OK) {
        return false;
    }
    conn->transport = &transport_rings;
    opening_free(conn);
    conn_stand(conn, &peer);
    return true;
}

static bool stand_on_tcp(struct conn *conn, const char *why, struct bytes rest)
{
    struct port *port = conn->port;
    struct handshake_peer peer = conn->opening->peer;
    int err = tcp_open(conn, &peer, -1);
    sodium_memzero(&peer.keys, sizeof(peer.keys));
    if (err != HK_OK) {
        return false;
    }
    if (port->config.fallback != NULL) {
        port->config.fallback(port->config.context, conn->node, conn->worker, why);
    }
    segment_unmap(conn->segment);
    conn->segment = NULL;
    opening_free(conn);
    conn_stand(conn, &peer);
    if (rest.n > 0) {
        tcp_received(conn, rest);
    }
    return true;
}

/* The responder has the caller's offer. NULL, or why the connection cannot be. */
static const char *take_offer(struct conn *conn)
{
    const uint8_t *offer = conn->opening->got;
    uint8_t answer[MESSAGE_BYTES] = {0};
    const char *why = NULL;
    if (type_of(conn->opening) != TYPE_OFFER) {
        return "it says nothing that an offer would be";
    }
    uint32_t ring_bytes = get_u32(offer + AT_RING_BYTES);
    conn->segment = segment_find(offer, &why);
    if (!say(conn, answer, conn->segment != NULL ? TYPE_TAKEN : TYPE_REFUSED)) {
        return "no memory for a connection";
    }
    bool stands = conn->segment != NULL ? stand_on_rings(conn, ring_bytes)
                                        : stand_on_tcp(conn, why, bytes_of(NULL, 0));
    return stands ? NULL : "no memory for a connection";
}

/* The caller has the responder's answer, and perhaps more. */
static const char *take_answer(struct conn *conn, struct bytes rest)
{
    uint32_t type = type_of(conn->opening);
    bool stands = false;
    if (type == TYPE_TAKEN && conn->segment != NULL) {
        stands = stand_on_rings(conn, RING_BYTES);
    } else if (type == TYPE_REFUSED) {
        const char *why = conn->segment != NULL ? "the peer does not find our memory: it runs on "
                                                  "another host, as another user, or in another "
                                                  "container"
                                                : "there is no memory to share";
        stands = stand_on_tcp(conn, why, rest);
    } else {
        return "it says nothing that an answer to an offer would be";
    }
    return stands ? NULL : "no memory for a connection";
}

static void opening_input(struct conn *conn, struct bytes bytes)
{
    struct opening *opening = conn->opening;
    uint32_t missing = MESSAGE_BYTES - opening->got_bytes;
    uint32_t n = bytes.n < missing ? bytes.n : missing;
    memcpy(opening->got + opening->got_bytes, bytes.at, n);
    opening->got_bytes += n;
    if (n < missing) {
        return;
    }
    struct bytes rest = bytes_of(bytes.at + n, bytes.n - n);
    const char *why = "it says more than an offer";
    if (opening->peer.caller) {
        why = take_answer(conn, rest);
    } else if (rest.n == 0) {
        why = take_offer(conn);
    }
    if (why != NULL) {
        conn_failed(conn, why);
    }
}

/* ---- The socket ---- */

static void segment_received(void *owner, struct bytes bytes)
{
    struct conn *conn = owner;
    if (conn->opening != NULL) {
        opening_input(conn, bytes);
    } else if (conn->link != NULL) {
        tcp_received(conn, bytes);
    }
    /* Else it only wakes us. */
}

static void segment_drained(void *owner)
{
    struct conn *conn = owner;
    if (conn->link != NULL) {
        tcp_flush(conn);
    }
}

static void segment_closed(void *owner, int error)
{
    struct conn *conn = owner;
    const char *why = error == 0 ? "closed by the peer" : strerrordesc_np(error);
    why = why != NULL ? why : "broken";
    conn->stream = NULL;
    if (conn->opening != NULL) {
        conn_failed(conn, why);
        return;
    }
    if (conn->link == NULL && shm_pending(&conn->shm)) {
        conn_make_ready(conn); /* what it wrote before it ended */
    }
    conn_ended(conn, why);
}

static const struct stream_ops segment_ops = {
    .received = segment_received, .drained = segment_drained, .closed = segment_closed};

int segment_open(struct conn *conn, const struct handshake_peer *peer, int fd)
{
    conn->opening = calloc(1, sizeof(*conn->opening));
    if (conn->opening == NULL) {
        return HK_ERR_NOMEM;
    }
    conn->opening->peer = *peer;
    conn->opening->fd = -1;
    int err = stream_open(conn->port->loop, fd, &segment_ops, conn, &conn->stream);
    if (err != HK_OK) {
        opening_free(conn);
        return err;
    }
    if (peer->caller) {
        conn->segment = segment_make(&conn->opening->fd);
        if (!say_offer(conn)) {
            /* The socket is the stream's by now; the peer sees it end, and so do we. */
            (void)shutdown(fd, SHUT_RDWR);
        }
    }
    return HK_OK;
}

void segment_wake(const struct conn *conn)
{
    static const uint8_t byte = 0;
    /* Bytes that still wait to leave will wake it as well. A wake-up that has no memory would be
     * lost: the connection ends instead. */
    if (conn->stream != NULL && stream_queued(conn->stream) == 0) {
        if (!stream_write(conn->stream, bytes_of(&byte, 1))) {
            (void)shutdown(stream_fd(conn->stream), SHUT_RDWR);
        }
    }
}

void segment_close(struct conn *conn)
{
    opening_free(conn);
    segment_unmap(conn->segment);
    conn->segment = NULL;
}
