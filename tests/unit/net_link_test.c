#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <sodium.h>

#include "net/link.h"
#include "net/link_state.h"
#include "support/net_link.h"

#define WINDOW LINK_WINDOW_MIN
#define LARGEST (FRAME_HEADER + FRAME_BODY_MAX)
#define MIB (1024u * 1024u)

static enum link_fault give(struct net_wire *wire, struct link *to)
{
    struct random random;

    random_init(&random, 7);
    return net_wire_give(wire, to, &random, 100 * 1000);
}

static void assert_frame(struct link *link, uint64_t id)
{
    struct bytes frame;

    assert_true(link_receive(link, &frame));
    assert_int_equal(net_frame_id(frame), id);
    assert_true(net_frame_intact(frame));
}

static void assert_nothing(struct link *link)
{
    struct bytes frame;

    assert_false(link_receive(link, &frame));
}

/* A link of end 0 and one of end 1 that have told each other their windows. */
static void open_pair(struct link **a, struct link **b)
{
    *a = net_link_open(0, WINDOW);
    *b = net_link_open(1, WINDOW);
    net_exchange(*a, *b);
}

static void close_pair(struct link *a, struct link *b)
{
    link_destroy(a);
    link_destroy(b);
}

static void opens_before_it_sends(void **state)
{
    (void)state;
    struct link *a = net_link_open(0, WINDOW), *b = net_link_open(1, 8 * WINDOW);
    struct net_wire wire = {0};

    assert_true(net_send(a, FRAME_BATCH, 1000, 1));
    assert_true(net_send(a, FRAME_VIEW, 200, 2));
    /* Without the peer's window only view frames may go. */
    net_wire_take(&wire, a, LINK_OUTPUT_MIN);
    assert_int_equal(wire.n, RECORD_EXTRA + RECORD_OPEN_BODY + RECORD_EXTRA + 200);
    assert_int_equal(link_output_ready(a), 0);
    assert_int_equal(give(&wire, b), LINK_OK);
    assert_frame(b, 2);
    assert_nothing(b);
    net_exchange(a, b);
    assert_frame(b, 1);
    assert_int_equal(a->out.window, 8 * WINDOW);
    assert_int_equal(b->out.window, WINDOW);
    close_pair(a, b);
    net_wire_clear(&wire);
}

static void record_is_as_documented(void **state)
{
    (void)state;
    struct link *a = net_link_open(0, WINDOW);
    struct net_wire wire = {0};
    uint8_t once[64], mac[16];
    static const uint8_t nonce[8];
    static const uint8_t open[] = {4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0};

    net_wire_take(&wire, a, LINK_OUTPUT_MIN);
    assert_int_equal(wire.n, sizeof(open) + 16);
    assert_memory_equal(wire.at, open, sizeof(open));
    (void)crypto_stream_chacha20(once, sizeof(once), nonce, net_link_config(0, WINDOW).keys.send);
    (void)crypto_onetimeauth_poly1305(mac, open, sizeof(open), once);
    assert_memory_equal(wire.at + sizeof(open), mac, 16);
    link_destroy(a);
    net_wire_clear(&wire);
}

/* No key of a record's MAC comes twice, also not across the batches in which they are made. */
static void every_record_has_its_key(void **state)
{
    (void)state;
    struct net_forger forger;
    uint8_t tags[100][LINK_MAC_BYTES];

    net_forger_init(&forger);
    for (uint32_t i = 0; i < 100; i++) {
        link_mac_seal(&forger.mac, bytes_of("same", 4), tags[i]);
        for (uint32_t k = 0; k < i; k++)
            assert_memory_not_equal(tags[i], tags[k], LINK_MAC_BYTES);
    }
}

/* ---- Random traffic, watched from outside ---- */

struct way {
    struct link *from, *to;
    struct net_wire wire;
    uint64_t sent[3], received[3]; /* frames by class: small, view, large */
    uint64_t counted;              /* bytes that the wire has seen, of what credit is for */
    uint64_t acked;                /* and what the receiver has said to have taken */
    uint32_t window;               /* of the receiver */
};

static uint32_t class_of(enum frame_kind kind, uint32_t bytes)
{
    return bytes > LINK_FRAGMENT ? 2 : kind == FRAME_VIEW ? 1 : 0;
}

static void way_send(struct way *way, struct random *random)
{
    static const uint32_t most[] = {300, 5000, LINK_FRAGMENT, 2 * MIB};
    uint32_t top = random_chance(random, 20000) ? 3 : (uint32_t)random_below(random, 3);
    uint32_t bytes = (uint32_t)random_between(random, FRAME_HEADER, most[top]);
    enum frame_kind kind = random_chance(random, 100000) ? FRAME_VIEW : FRAME_BATCH;
    uint32_t class = class_of(kind, bytes);

    if (class == 1 && bytes > 2000)
        return; /* a flood of view frames has its own test */
    if (net_send(way->from, kind, bytes, way->sent[class] << 2 | class))
        way->sent[class]++;
}

/* What is on the wire, record by record: the sender keeps within what it was allowed. */
static void way_watch(struct way *way, struct way *back)
{
    for (uint32_t at = 0; at < way->wire.n;) {
        const uint8_t *record = way->wire.at + at;
        uint32_t body = get_u32(record + RECORD_AT_BODY_BYTES);
        uint8_t kind = record[RECORD_AT_KIND];

        if (kind == RECORD_FRAMES || kind == RECORD_FIRST || kind == RECORD_NEXT)
            way->counted += body;
        back->acked = get_u64(record + RECORD_AT_CONSUMED);
        at += RECORD_EXTRA + body;
    }
    assert_true(way->counted <= way->acked + way->window);
    assert_true(way->to->in.received <= way->to->in.consumed + way->window);
}

static void way_receive(struct way *way, uint32_t max)
{
    struct bytes frame;

    for (uint32_t i = 0; i < max && link_receive(way->to, &frame); i++) {
        uint64_t id = net_frame_id(frame);
        uint32_t class = class_of(net_frame_kind(frame), frame.n);

        assert_true(net_frame_intact(frame));
        assert_int_equal(id, way->received[class] << 2 | class);
        way->received[class]++;
    }
}

/* The two wires are never full at one time here, so that the watcher sees credit when it comes. */
static void way_carry(struct way *way, struct way *back, struct random *random)
{
    static const uint32_t pieces[] = {40, 3000, 64 * 1024, 400 * 1024};
    uint32_t capacity = LINK_OUTPUT_MIN + (uint32_t)random_below(random, 1000000);

    net_wire_take(&way->wire, way->from, capacity);
    way_watch(way, back);
    assert_int_equal(net_wire_give(&way->wire, way->to, random, pieces[random_below(random, 4)]),
                     LINK_OK);
}

static void run_traffic(uint64_t seed, uint32_t window_a, uint32_t window_b)
{
    struct random random;
    struct link *a = net_link_open(0, window_a), *b = net_link_open(1, window_b);
    struct way forth = {.from = a, .to = b, .window = window_b};
    struct way back = {.from = b, .to = a, .window = window_a};

    random_init(&random, seed);
    for (uint32_t round = 0; round < 1500; round++) {
        for (uint64_t n = random_below(&random, 4); n > 0; n--)
            way_send(random_chance(&random, 500000) ? &forth : &back, &random);
        way_carry(&forth, &back, &random);
        way_carry(&back, &forth, &random);
        way_receive(&forth, (uint32_t)random_below(&random, 8));
        way_receive(&back, (uint32_t)random_below(&random, 4));
    }
    for (uint32_t round = 0; round < 10000; round++) {
        way_carry(&forth, &back, &random);
        way_carry(&back, &forth, &random);
        way_receive(&forth, UINT32_MAX);
        way_receive(&back, UINT32_MAX);
        if (link_output_ready(a) == 0 && link_output_ready(b) == 0)
            break;
    }
    for (uint32_t class = 0; class < 3; class ++) {
        assert_true(forth.sent[class] > 0 && back.sent[class] > 0);
        assert_int_equal(forth.sent[class], forth.received[class]);
        assert_int_equal(back.sent[class], back.received[class]);
    }
    assert_true(link_outstanding(a) < LINK_CREDIT_LAG && link_outstanding(b) < LINK_CREDIT_LAG);
    assert_int_equal(link_dropped(a) + link_dropped(b), 0);
    /* What was needed for the traffic has been given back. */
    assert_true(link_bytes_held(a) < sizeof(struct link) + 6 * LINK_CHUNK);
    assert_true(link_bytes_held(b) < sizeof(struct link) + 6 * LINK_CHUNK);
    close_pair(a, b);
    net_wire_clear(&forth.wire);
    net_wire_clear(&back.wire);
}

static void random_traffic_arrives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        run_traffic(seed, WINDOW, seed % 2 == 0 ? WINDOW : 4 * MIB);
    }
}

/* ---- Order and credit ---- */

static void heartbeat_passes_a_large_frame(void **state)
{
    (void)state;
    struct link *a, *b;
    struct net_wire wire = {0};
    struct random random;
    uint32_t beats = 0;

    open_pair(&a, &b);
    random_init(&random, 1);
    assert_true(net_send(a, FRAME_BATCH, LARGEST, 1));
    while (link_outstanding(a) >= LINK_CREDIT_LAG) {
        uint32_t room = LINK_OUTPUT_MIN + 1000;
        uint8_t *out = malloc(room);

        assert_non_null(out);
        /* Whatever has gone before: of what follows it is the first. */
        assert_true(net_send(a, FRAME_VIEW, 200, 100 + beats));
        uint32_t n = link_output(a, out, room);
        assert_true(n > 0);
        assert_int_equal(out[RECORD_AT_KIND], RECORD_VIEW);
        assert_int_equal(link_input(b, bytes_of(out, n)), LINK_OK);
        free(out);

        struct bytes frame;
        while (link_receive(b, &frame)) {
            assert_true(net_frame_intact(frame));
            if (net_frame_kind(frame) == FRAME_VIEW)
                assert_int_equal(net_frame_id(frame), 100 + beats++);
            else
                assert_int_equal(frame.n, LARGEST);
        }
        net_wire_take(&wire, b, LINK_OUTPUT_MIN);
        assert_int_equal(give(&wire, a), LINK_OK);
    }
    assert_true(beats >= LARGEST / LINK_FRAGMENT);
    close_pair(a, b);
    net_wire_clear(&wire);
}

/* View frames go although the peer has no room for anything else. */
static void heartbeat_needs_no_credit(void **state)
{
    (void)state;
    struct link *a, *b;

    open_pair(&a, &b);
    for (uint32_t i = 0; i < 16; i++)
        assert_true(net_send(a, FRAME_BATCH, LINK_FRAGMENT, i));
    net_exchange(a, b);
    assert_int_equal(link_output_ready(a), 0);
    assert_true(link_outstanding(a) == 16 * LINK_FRAGMENT);
    assert_true(net_send(a, FRAME_VIEW, 200, 99));
    assert_true(link_output_ready(a) > 0);
    net_exchange(a, b);
    assert_frame(b, 99);
    close_pair(a, b);
}

static void small_frames_pass_between_fragments(void **state)
{
    (void)state;
    struct link *a, *b;
    struct net_wire wire = {0};
    static const uint8_t expected[] = {RECORD_FIRST, RECORD_FRAMES, RECORD_NEXT};
    uint32_t at = 0;

    open_pair(&a, &b);
    assert_true(net_send(a, FRAME_BATCH, 3 * LINK_FRAGMENT, 1));
    assert_true(net_send(a, FRAME_BATCH, 100, 2));
    a->out.turn_large = true;
    net_wire_take(&wire, a, MIB);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(wire.at[at + RECORD_AT_KIND], expected[i]);
        at += RECORD_EXTRA + get_u32(wire.at + at);
    }
    assert_int_equal(give(&wire, b), LINK_OK);
    assert_frame(b, 2);
    assert_frame(b, 1);
    close_pair(a, b);
    net_wire_clear(&wire);
}

/* Neither a stream of small frames nor a large one starves the other. */
static void both_kinds_make_progress(void **state)
{
    (void)state;
    struct link *a, *b;
    struct bytes frame;
    uint32_t small = 0, large = 0, next = 0;

    open_pair(&a, &b);
    assert_true(net_send(a, FRAME_BATCH, 8 * MIB, UINT32_MAX));
    for (uint32_t round = 0; round < 200 && large == 0; round++) {
        while (a->out.small.bytes < 4 * WINDOW)
            assert_true(net_send(a, FRAME_BATCH, 50000, next++));
        net_exchange(a, b);
        while (link_receive(b, &frame)) {
            small += frame.n == 50000;
            large += frame.n == 8 * MIB;
        }
    }
    assert_int_equal(large, 1);
    assert_true(small > 50);
    close_pair(a, b);
}

static void credit_returns_without_traffic(void **state)
{
    (void)state;
    struct link *a, *b;

    open_pair(&a, &b);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(net_send(a, FRAME_BATCH, 5000, i));
        net_exchange(a, b);
        assert_frame(b, i);
        net_exchange(a, b);
        assert_true(link_outstanding(a) < LINK_CREDIT_LAG);
    }
    /* And with a word in return at once. */
    assert_true(net_send(b, FRAME_BATCH, 100, 1));
    net_exchange(a, b);
    assert_int_equal(link_outstanding(a), 0);
    close_pair(a, b);
}

static void full_queue_drops(void **state)
{
    (void)state;
    struct link_config config = net_link_config(0, WINDOW);
    struct link *a = NULL;
    uint64_t held;

    config.queue_max = LARGEST;
    assert_int_equal(link_create(&config, &a), 0);
    assert_true(net_send(a, FRAME_BATCH, LARGEST - 1000, 1));
    assert_true(net_send(a, FRAME_BATCH, 900, 2));
    held = link_bytes_held(a);
    assert_false(net_send(a, FRAME_BATCH, 101, 3));
    assert_false(net_send(a, FRAME_VIEW, 101, 4));
    assert_false(net_send(a, FRAME_BATCH, 10 * MIB, 5));
    assert_int_equal(link_bytes_held(a), held);
    assert_int_equal(link_outstanding(a), LARGEST - 100);
    assert_true(net_send(a, FRAME_BATCH, 100, 6));
    link_destroy(a);
}

static void forget_drops_what_waits(void **state)
{
    (void)state;
    struct link *a, *b;
    struct net_wire wire = {0};
    uint8_t *out = malloc(LINK_OUTPUT_MIN);

    open_pair(&a, &b);
    assert_non_null(out);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(net_send(a, FRAME_BATCH, MIB, i));
    net_wire_add(&wire, bytes_of(out, link_output(a, out, LINK_OUTPUT_MIN)));
    for (uint32_t i = 0; i < 100; i++)
        assert_true(net_send(a, FRAME_BATCH, 1000, 10 + i));
    assert_true(net_send(a, FRAME_VIEW, 1000, 200));
    link_forget(a);
    /* The view frame and the frame that was begun still go, and the link goes on. */
    assert_int_equal(give(&wire, b), LINK_OK);
    net_exchange(a, b);
    assert_frame(b, 200);
    net_exchange(a, b);
    assert_frame(b, 0);
    assert_true(net_send(a, FRAME_BATCH, 1000, 300));
    net_exchange(a, b);
    assert_frame(b, 300);
    assert_nothing(b);
    close_pair(a, b);
    net_wire_clear(&wire);
    free(out);
}

/* ---- Damage on the way ---- */

/* A stream with a record of each kind, and where its records start. */
struct tape {
    struct net_wire wire;
    uint32_t starts[16], records;
};

static void tape_record(struct tape *tape)
{
    struct link *a = net_link_open(0, WINDOW), *b = net_link_open(1, WINDOW);
    struct net_wire answers = {0};

    memset(tape, 0, sizeof(*tape));
    net_wire_take(&answers, b, LINK_OUTPUT_MIN);
    assert_int_equal(give(&answers, a), LINK_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(net_send(a, i == 1 ? FRAME_VIEW : FRAME_BATCH, 100, i));
        net_wire_take(&tape->wire, a, LINK_OUTPUT_MIN);
    }
    assert_true(net_send(a, FRAME_BATCH, 2 * LINK_FRAGMENT + 50, 3));
    net_wire_take(&tape->wire, a, LINK_OUTPUT_MIN);
    for (uint32_t at = 0; at < tape->wire.n; at += RECORD_EXTRA + get_u32(tape->wire.at + at))
        tape->starts[tape->records++] = at;
    assert_int_equal(tape->records, 7);
    tape->starts[tape->records] = tape->wire.n;
    close_pair(a, b);
    net_wire_clear(&answers);
}

static struct bytes tape_part(const struct tape *tape, uint32_t record)
{
    return bytes_of(tape->wire.at + tape->starts[record],
                    tape->starts[record + 1] - tape->starts[record]);
}

/* Frames that come out of a link that is given these bytes; all must be as they were sent. */
static uint32_t play(const uint8_t *at, uint32_t n, enum link_fault *fault_out)
{
    struct link *b = net_link_open(1, WINDOW);
    struct bytes frame;
    uint32_t frames = 0;

    for (uint32_t done = 0; done < n;) {
        uint32_t piece = n - done < 60000 ? n - done : 60000;

        *fault_out = link_input(b, bytes_of(at + done, piece));
        while (link_receive(b, &frame)) {
            assert_true(net_frame_intact(frame));
            frames++;
        }
        done += piece;
    }
    link_destroy(b);
    return frames;
}

static void every_bit_counts(void **state)
{
    (void)state;
    struct tape tape;
    struct random random;
    enum link_fault fault = LINK_OK;

    tape_record(&tape);
    random_init(&random, 3);
    assert_int_equal(play(tape.wire.at, tape.wire.n, &fault), 4);
    assert_int_equal(fault, LINK_OK);

    uint32_t all = 8 * tape.starts[4];

    for (uint32_t i = 0; i < all + 200; i++) {
        uint32_t bit = i < all ? i : (uint32_t)random_below(&random, 8 * (uint64_t)tape.wire.n);

        tape.wire.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(play(tape.wire.at, tape.wire.n, &fault) < 4);
        assert_int_not_equal(fault, LINK_OK);
        tape.wire.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    net_wire_clear(&tape.wire);
}

/* Records that are lost, doubled or exchanged are noticed at the first one that is not in its
 * place. */
static void every_record_has_its_place(void **state)
{
    (void)state;
    struct tape tape;
    struct net_wire wire = {0};

    tape_record(&tape);
    for (uint32_t i = 0; i < tape.records; i++) {
        for (uint32_t k = 0; k < tape.records; k++) {
            struct link *b = net_link_open(1, WINDOW);

            for (uint32_t r = 0; r < i; r++)
                net_wire_add(&wire, tape_part(&tape, r));
            assert_int_equal(give(&wire, b), LINK_OK);
            net_wire_add(&wire, tape_part(&tape, k));
            assert_int_equal(give(&wire, b), k == i ? LINK_OK : LINK_MAC);
            if (k != i) {
                assert_int_equal(link_input(b, tape_part(&tape, i)), LINK_MAC);
                assert_nothing(b);
            }
            link_destroy(b);
        }
    }
    net_wire_clear(&tape.wire);
    net_wire_clear(&wire);
}

/* A node's own records, thrown back at it. */
static void reflection_is_noticed(void **state)
{
    (void)state;
    struct link *a = net_link_open(0, WINDOW);
    struct net_wire wire = {0};

    net_wire_take(&wire, a, LINK_OUTPUT_MIN);
    assert_int_equal(give(&wire, a), LINK_MAC);
    link_destroy(a);
    net_wire_clear(&wire);
}

/* ---- A peer that has the keys and keeps no rule ---- */

struct hostile {
    struct link *link;
    struct net_forger forger;
    struct net_wire wire;
};

static void hostile_begin(struct hostile *h)
{
    memset(h, 0, sizeof(*h));
    h->link = net_link_open(1, WINDOW);
    net_forger_init(&h->forger);
    net_forge_open(&h->forger, &h->wire, WINDOW);
}

static void hostile_end(struct hostile *h, enum link_fault expected)
{
    (void)give(&h->wire, h->link);
    assert_int_equal(link_input(h->link, bytes_of(NULL, 0)), expected);
    if (expected != LINK_OK) {
        assert_nothing(h->link);
        assert_int_equal(link_output_ready(h->link), 0);
        assert_false(net_send(h->link, FRAME_BATCH, 100, 1));
    }
    link_destroy(h->link);
    net_wire_clear(&h->wire);
}

static void hostile_says(struct hostile *h, uint8_t kind, const uint8_t *body, uint32_t n)
{
    net_forge(&h->forger, &h->wire, kind, bytes_of(body, n));
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t kind;
        uint32_t n;
    } cases[] = {
        {0, 0},
        {7, 0},
        {255, 0},
        {RECORD_OPEN, 0},
        {RECORD_OPEN, 5},
        {RECORD_FRAMES, 0},
        {RECORD_FRAMES, FRAME_HEADER - 1},
        {RECORD_FRAMES, LINK_FRAGMENT + 1},
        {RECORD_VIEW, FRAME_HEADER - 1},
        {RECORD_FIRST, LINK_FRAGMENT - 1},
        {RECORD_FIRST, LINK_FRAGMENT + 1},
        {RECORD_NEXT, 0},
        {RECORD_NEXT, LINK_FRAGMENT + 1},
        {RECORD_CREDIT, 1},
    };
    uint8_t *body = calloc(1, LINK_FRAGMENT + 1);
    struct hostile h;

    assert_non_null(body);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hostile_begin(&h);
        hostile_says(&h, cases[i].kind, body, cases[i].n);
        hostile_end(&h, LINK_RECORD);
    }
    /* A length is refused before anything is kept for it. */
    hostile_begin(&h);
    assert_int_equal(give(&h.wire, h.link), LINK_OK);
    put_u32(body, UINT32_MAX);
    body[RECORD_AT_KIND] = RECORD_FRAMES;
    assert_int_equal(link_input(h.link, bytes_of(body, RECORD_HEADER)), LINK_RECORD);
    assert_true(link_bytes_held(h.link) < sizeof(struct link) + 2 * LINK_CHUNK);
    hostile_end(&h, LINK_RECORD);
    /* Reserved bytes. */
    for (uint32_t i = 0; i < 3; i++) {
        hostile_begin(&h);
        hostile_says(&h, RECORD_CREDIT, NULL, 0);
        h.wire.at[RECORD_EXTRA + RECORD_OPEN_BODY + RECORD_AT_RESERVED + i] = 1;
        hostile_end(&h, LINK_RECORD);
    }
    free(body);
}

static void opening_is_once_and_first(void **state)
{
    (void)state;
    static const uint32_t windows[] = {0, LINK_WINDOW_MIN - 1, LINK_WINDOW_MAX + 1, UINT32_MAX};
    struct hostile h;

    hostile_begin(&h);
    net_forge_open(&h.forger, &h.wire, WINDOW);
    hostile_end(&h, LINK_RECORD);

    hostile_begin(&h);
    h.wire.n = 0;
    net_forger_init(&h.forger);
    hostile_says(&h, RECORD_CREDIT, NULL, 0);
    hostile_end(&h, LINK_RECORD);

    for (uint32_t i = 0; i < 4; i++) {
        hostile_begin(&h);
        h.wire.n = 0;
        net_forger_init(&h.forger);
        net_forge_open(&h.forger, &h.wire, windows[i]);
        hostile_end(&h, LINK_RECORD);
    }
}

static void bad_frames_are_refused(void **state)
{
    (void)state;
    struct hostile h;
    uint8_t *two = malloc(200);
    uint8_t *frame = net_frame_make(FRAME_BATCH, 100, 1);
    uint8_t *view = net_frame_make(FRAME_VIEW, 100, 2);

    assert_non_null(two);
    /* Of the wrong kind, in both directions. */
    hostile_begin(&h);
    hostile_says(&h, RECORD_VIEW, frame, 100);
    hostile_end(&h, LINK_FRAME);
    hostile_begin(&h);
    hostile_says(&h, RECORD_FRAMES, view, 100);
    hostile_end(&h, LINK_FRAME);
    /* The second of two is cut, has no magic, says more than there is. */
    memcpy(two, frame, 100);
    memcpy(two + 100, frame, 100);
    for (uint32_t n = 101; n < 200; n++) {
        hostile_begin(&h);
        hostile_says(&h, RECORD_FRAMES, two, n);
        hostile_end(&h, LINK_FRAME);
    }
    two[100 + 8] ^= 1;
    hostile_begin(&h);
    hostile_says(&h, RECORD_FRAMES, two, 200);
    hostile_end(&h, LINK_FRAME);
    two[100 + 8] ^= 1;
    put_u32(two + 100 + 24, 37);
    hostile_begin(&h);
    hostile_says(&h, RECORD_FRAMES, two, 200);
    hostile_end(&h, LINK_FRAME);
    put_u32(two + 100 + 24, 36);
    hostile_begin(&h);
    hostile_says(&h, RECORD_FRAMES, two, 200);
    hostile_end(&h, LINK_OK);
    free(two);
    free(frame);
    free(view);
}

static void bad_fragments_are_refused(void **state)
{
    (void)state;
    struct hostile h;
    uint32_t n = 2 * LINK_FRAGMENT + 100;
    uint8_t *large = net_frame_make(FRAME_BATCH, n, 1);
    uint8_t *small = net_frame_make(FRAME_BATCH, LINK_FRAGMENT, 1);

    /* A next one without a first. */
    hostile_begin(&h);
    hostile_says(&h, RECORD_NEXT, large, 100);
    hostile_end(&h, LINK_FRAGMENT_FAULT);
    /* A first one within another frame. */
    hostile_begin(&h);
    hostile_says(&h, RECORD_FIRST, large, LINK_FRAGMENT);
    hostile_says(&h, RECORD_FIRST, large, LINK_FRAGMENT);
    hostile_end(&h, LINK_FRAGMENT_FAULT);
    /* One byte short, and a last one with a byte more than is due, or less. */
    hostile_begin(&h);
    hostile_says(&h, RECORD_FIRST, large, LINK_FRAGMENT);
    hostile_says(&h, RECORD_NEXT, large, LINK_FRAGMENT - 1);
    hostile_end(&h, LINK_FRAGMENT_FAULT);
    for (uint32_t last = 99; last <= 101; last += 2) {
        hostile_begin(&h);
        hostile_says(&h, RECORD_FIRST, large, LINK_FRAGMENT);
        hostile_says(&h, RECORD_NEXT, large, LINK_FRAGMENT);
        hostile_says(&h, RECORD_NEXT, large, last);
        hostile_end(&h, LINK_FRAGMENT_FAULT);
    }
    /* A frame that is not large. */
    hostile_begin(&h);
    hostile_says(&h, RECORD_FIRST, small, LINK_FRAGMENT);
    hostile_end(&h, LINK_FRAGMENT_FAULT);
    /* No frame, or one that is too long: nothing is kept for what it announces. */
    put_u32(large + 24, FRAME_BODY_MAX + 1);
    hostile_begin(&h);
    hostile_says(&h, RECORD_FIRST, large, LINK_FRAGMENT);
    hostile_end(&h, LINK_FRAME);
    put_u32(large + 24, FRAME_BODY_MAX);
    hostile_begin(&h);
    hostile_says(&h, RECORD_FIRST, large, LINK_FRAGMENT);
    assert_int_equal(give(&h.wire, h.link), LINK_OK);
    assert_true(link_bytes_held(h.link) < 4 * LINK_FRAGMENT);
    hostile_end(&h, LINK_OK);
    free(large);
    free(small);
}

static void credit_is_enforced(void **state)
{
    (void)state;
    struct hostile h;
    uint8_t *frame = net_frame_make(FRAME_BATCH, LINK_FRAGMENT, 1);

    /* More than the window, by 64 bytes. */
    hostile_begin(&h);
    for (uint32_t i = 0; i < WINDOW / LINK_FRAGMENT; i++)
        hostile_says(&h, RECORD_FRAMES, frame, LINK_FRAGMENT);
    assert_int_equal(give(&h.wire, h.link), LINK_OK);
    uint8_t *more = net_frame_make(FRAME_BATCH, 64, 2);
    hostile_says(&h, RECORD_FRAMES, more, 64);
    hostile_end(&h, LINK_CREDIT);
    /* Thanks for what was never sent. */
    hostile_begin(&h);
    h.forger.consumed = 1;
    hostile_says(&h, RECORD_CREDIT, NULL, 0);
    hostile_end(&h, LINK_CREDIT);
    /* Credit that is taken back. */
    hostile_begin(&h);
    assert_int_equal(give(&h.wire, h.link), LINK_OK);
    assert_true(net_send(h.link, FRAME_BATCH, 100, 1));
    net_wire_take(&h.wire, h.link, LINK_OUTPUT_MIN);
    h.wire.n = 0;
    h.forger.consumed = 100;
    hostile_says(&h, RECORD_CREDIT, NULL, 0);
    assert_int_equal(give(&h.wire, h.link), LINK_OK);
    assert_int_equal(link_outstanding(h.link), 0);
    h.forger.consumed = 99;
    hostile_says(&h, RECORD_CREDIT, NULL, 0);
    hostile_end(&h, LINK_CREDIT);
    free(frame);
    free(more);
}

static void flood_of_view_frames_is_bounded(void **state)
{
    (void)state;
    struct hostile h;
    uint8_t *frame = net_frame_make(FRAME_VIEW, 1000, 1);
    struct bytes out;
    uint32_t received = 0;

    hostile_begin(&h);
    for (uint32_t i = 0; i < 10000; i++) {
        hostile_says(&h, RECORD_VIEW, frame, 1000);
        assert_int_equal(give(&h.wire, h.link), LINK_OK);
        assert_true(link_bytes_held(h.link) < WINDOW);
    }
    while (link_receive(h.link, &out))
        received++;
    assert_int_equal(received, WINDOW / 4 / 1000);
    assert_int_equal(link_dropped(h.link), 10000 - received);
    hostile_end(&h, LINK_OK);
    free(frame);
}

/* Large frames that nobody takes: the first may be as long as it likes, the others share the
 * window. */
static void large_frames_are_bounded(void **state)
{
    (void)state;
    struct hostile h;
    uint32_t n = 8 * MIB, least = LINK_FRAGMENT + 64;
    uint8_t *large = net_frame_make(FRAME_BATCH, n, 1);
    uint8_t *small = net_frame_make(FRAME_BATCH, least, 2);
    struct bytes frame;
    uint32_t taken = 0;

    hostile_begin(&h);
    for (uint32_t at = 0; at < n; at += LINK_FRAGMENT) {
        hostile_says(&h, at == 0 ? RECORD_FIRST : RECORD_NEXT, large + at, LINK_FRAGMENT);
        assert_int_equal(give(&h.wire, h.link), LINK_OK);
        /* Memory follows what has come. */
        assert_true(link_bytes_held(h.link) < 2 * (at + LINK_FRAGMENT) + 2 * LINK_OUTPUT_MIN);
    }
    enum link_fault fault = LINK_OK;
    for (uint32_t i = 0; i < 100 && fault == LINK_OK; i++) {
        hostile_says(&h, RECORD_FIRST, small, LINK_FRAGMENT);
        hostile_says(&h, RECORD_NEXT, small + LINK_FRAGMENT, 64);
        fault = give(&h.wire, h.link);
        assert_true(link_bytes_held(h.link) < n + 2 * WINDOW);
    }
    assert_int_equal(fault, LINK_CREDIT);
    hostile_end(&h, LINK_CREDIT);

    /* The same by a peer that keeps the rules: all of it arrives. */
    struct link *a, *b;
    open_pair(&a, &b);
    assert_true(net_send(a, FRAME_BATCH, n, 1));
    for (uint32_t i = 0; i < 100; i++)
        assert_true(net_send(a, FRAME_BATCH, least, 2));
    for (uint32_t round = 0; round < 1000; round++) {
        net_exchange(a, b);
        assert_true(link_bytes_held(b) < 2 * n + 2 * WINDOW);
        if (link_receive(b, &frame)) {
            assert_true(net_frame_intact(frame));
            taken++;
        }
    }
    assert_int_equal(taken, 101);
    close_pair(a, b);
    free(large);
    free(small);
}

/* Wherever the pieces meet, the same frame arrives; the second one is let go when it is out. */
static void pieces_arrive_as_one(void **state)
{
    static const uint32_t heads[] = {64,
                                     65,
                                     LINK_FRAGMENT - 1,
                                     LINK_FRAGMENT,
                                     LINK_FRAGMENT + 1,
                                     5 * LINK_FRAGMENT + 7,
                                     5 * LINK_FRAGMENT + 9};
    struct link *a, *b;
    struct bytes frame = {NULL, 0};
    uint32_t held = 0, bytes = 5 * LINK_FRAGMENT + 9;
    (void)state;

    open_pair(&a, &b);
    net_exchange(a, b);
    for (uint32_t i = 0; i < 7; i++) {
        assert_false(link_large_under_way(a));
        assert_true(net_give(a, bytes, i, heads[i], &held));
        assert_true(link_large_under_way(a) && held == 1);
        for (uint32_t round = 0; round < 100 && !link_receive(b, &frame); round++)
            net_exchange(a, b);
        assert_true(net_frame_intact(frame));
        assert_int_equal(net_frame_id(frame), i);
        assert_int_equal(held, 0);
        assert_false(link_receive(b, &frame));
        net_exchange(a, b);
    }
    /* One whose last fragment is long is on its way until it is taken. */
    assert_true(net_give(a, 2 * LINK_FRAGMENT, 9, 100, &held));
    net_exchange(a, b);
    assert_int_equal(held, 0);
    assert_true(link_large_under_way(a));
    assert_true(link_receive(b, &frame));
    net_exchange(a, b);
    assert_false(link_large_under_way(a));
    close_pair(a, b);
}

static void pieces_are_let_go(void **state)
{
    struct link *a, *b;
    uint8_t out[LINK_OUTPUT_MIN];
    uint32_t held = 0;
    (void)state;

    open_pair(&a, &b);
    net_exchange(a, b);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(net_give(a, 60 * MIB, i, 100, &held));
    assert_int_equal(held, 4);
    assert_false(net_give(a, 60 * MIB, 4, 100, &held)); /* the queue is full */
    assert_int_equal(held, 4);
    link_forget(a);
    assert_int_equal(held, 0);
    assert_true(net_give(a, MIB, 5, 100, &held));
    assert_true(link_output(a, out, sizeof(out)) > 0);
    assert_true(net_give(a, MIB, 6, 100, &held));
    link_forget(a);
    assert_int_equal(held, 1); /* which is partly out */
    close_pair(a, b);
    assert_int_equal(held, 0);
}

static void faults_have_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LINK_FAULTS; i++)
        assert_non_null(link_fault_names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_before_it_sends),
        cmocka_unit_test(record_is_as_documented),
        cmocka_unit_test(every_record_has_its_key),
        cmocka_unit_test(random_traffic_arrives),
        cmocka_unit_test(heartbeat_passes_a_large_frame),
        cmocka_unit_test(heartbeat_needs_no_credit),
        cmocka_unit_test(small_frames_pass_between_fragments),
        cmocka_unit_test(both_kinds_make_progress),
        cmocka_unit_test(credit_returns_without_traffic),
        cmocka_unit_test(full_queue_drops),
        cmocka_unit_test(forget_drops_what_waits),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(every_record_has_its_place),
        cmocka_unit_test(reflection_is_noticed),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(opening_is_once_and_first),
        cmocka_unit_test(bad_frames_are_refused),
        cmocka_unit_test(bad_fragments_are_refused),
        cmocka_unit_test(credit_is_enforced),
        cmocka_unit_test(flood_of_view_frames_is_bounded),
        cmocka_unit_test(large_frames_are_bounded),
        cmocka_unit_test(pieces_arrive_as_one),
        cmocka_unit_test(pieces_are_let_go),
        cmocka_unit_test(faults_have_names),
    };

    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
