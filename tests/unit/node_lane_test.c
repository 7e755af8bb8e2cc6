/* One lane over a link that loses, doubles and reorders: what is delivered is what was sent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "node/lane.h"

#define LINK_MAX 4096u
#define STEP_US 500u

/* A frame, or an acknowledgement alone (n 0), on its way. */
struct parcel {
    uint64_t due_us;
    uint64_t sequence, acked;
    uint32_t incarnation, epoch, n;
    bool gap;
    bool back; /* from the receiver */
    uint8_t *bytes;
};

struct faults {
    uint32_t lost;    /* in a thousand */
    uint32_t doubled; /* in a thousand */
    uint64_t late_us; /* a frame takes up to so much longer */
};

struct rig {
    struct lane_out out;
    struct lane_in in;
    struct wheel wheel;
    struct faults faults;
    struct random random;
    struct parcel link[LINK_MAX];
    uint32_t link_n;
    uint64_t now_us;
    uint64_t sent, delivered; /* messages of this incarnation */
    uint64_t frames, again;
    uint32_t incarnation;
    uint32_t epoch, view_epoch; /* of sender and receiver */
    uint32_t newest;            /* epoch of the last message that was delivered */
};

/* A message: its number, its epoch, and bytes that follow from the number. */
#define MESSAGE_HEAD 16u

static void message_write(uint8_t *at, uint32_t n, uint64_t number, uint32_t epoch)
{
    put_u64(at, number);
    put_u32(at + 8, epoch);
    put_u32(at + 12, n);
    for (uint32_t i = MESSAGE_HEAD; i < n; i++) {
        at[i] = (uint8_t)(number * 31 + i);
    }
}

static void deliver(struct rig *rig, struct bytes messages)
{
    assert_true(messages.n > 0);
    while (messages.n > 0) {
        assert_true(messages.n >= MESSAGE_HEAD);
        uint32_t n = get_u32(messages.at + 12);
        uint32_t epoch = get_u32(messages.at + 8);
        assert_true(n <= messages.n);
        assert_int_equal(get_u64(messages.at), rig->delivered + 1);
        assert_true(epoch >= rig->newest && epoch <= rig->view_epoch);
        for (uint32_t i = MESSAGE_HEAD; i < n; i++) {
            if (messages.at[i] != (uint8_t)((rig->delivered + 1) * 31 + i)) {
                fail_msg("byte %u of message %llu", i, (unsigned long long)rig->delivered + 1);
            }
        }
        rig->newest = epoch;
        rig->delivered++;
        messages.at += n;
        messages.n -= n;
    }
}

static void begin(struct rig *rig)
{
    rig->incarnation++;
    rig->sent = 0;
    rig->delivered = 0;
    rig->newest = 0;
    lane_out_init(&rig->out, 1, 0, 3);
    lane_in_init(&rig->in, 0, 0, 0, 4);
}

static void end(struct rig *rig)
{
    wheel_disarm(&rig->wheel, &rig->out.timer);
    lane_out_deinit(&rig->out);
    lane_in_deinit(&rig->in);
}

static struct rig *rig_create(uint64_t seed, struct faults faults)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    random_init(&rig->random, seed);
    wheel_init(&rig->wheel, 0);
    rig->faults = faults;
    rig->epoch = rig->view_epoch = 1;
    begin(rig);
    return rig;
}

static void rig_destroy(struct rig *rig)
{
    end(rig);
    for (uint32_t i = 0; i < rig->link_n; i++) {
        free(rig->link[i].bytes);
    }
    free(rig);
}

/* ---- The link ---- */

static void post(struct rig *rig, const struct parcel *parcel, struct bytes body)
{
    uint32_t copies = random_below(&rig->random, 1000) < rig->faults.doubled ? 2 : 1;
    for (uint32_t i = 0; i < copies; i++) {
        if (random_below(&rig->random, 1000) < rig->faults.lost || rig->link_n == LINK_MAX) {
            continue;
        }
        struct parcel *p = &rig->link[rig->link_n++];
        *p = *parcel;
        p->incarnation = rig->incarnation;
        p->due_us = rig->now_us + STEP_US;
        if (rig->faults.late_us > 0) {
            p->due_us += random_below(&rig->random, rig->faults.late_us);
        }
        p->n = body.n;
        p->bytes = body.n > 0 ? malloc(body.n) : NULL;
        if (body.n > 0) {
            assert_non_null(p->bytes);
            memcpy(p->bytes, body.at, body.n);
        }
    }
}

static void send_frame(struct rig *rig, uint64_t sequence)
{
    const struct lane_kept *kept = lane_out_kept(&rig->out, sequence);
    const uint8_t *at = lane_out_frame(&rig->out, kept);
    struct parcel parcel = {.sequence = sequence, .epoch = kept->epoch};
    rig->frames++;
    rig->again += kept->again;
    post(rig, &parcel, bytes_of(at + LANE_FRAME_HEAD, kept->bytes - LANE_FRAME_HEAD));
    if (rig->out.timer.place == TIMER_IDLE) {
        wheel_arm(&rig->wheel, &rig->out.timer, lane_out_due(&rig->out));
    }
}

static void send_again(struct rig *rig)
{
    uint64_t sequence;
    while ((sequence = lane_out_again(&rig->out, rig->now_us)) != 0) {
        send_frame(rig, sequence);
    }
}

static void send_ack(struct rig *rig)
{
    struct parcel parcel = {.acked = rig->in.delivered, .gap = lane_in_gap(&rig->in), .back = true};
    lane_in_acked(&rig->in);
    post(rig, &parcel, bytes_of(NULL, 0));
}

static void drain(struct rig *rig)
{
    struct bytes messages;
    while (lane_in_next(&rig->in, rig->view_epoch, &messages)) {
        deliver(rig, messages);
        lane_in_done(&rig->in, messages.n);
    }
}

static void arrive(struct rig *rig, const struct parcel *p)
{
    if (p->incarnation != rig->incarnation) {
        return; /* frames name both incarnations */
    }
    if (p->back) {
        assert_true(lane_out_ack(&rig->out, p->acked, rig->now_us));
        uint64_t missing =
            p->gap && p->acked == rig->out.acked ? lane_out_gap(&rig->out, rig->now_us) : 0;
        if (missing != 0) {
            send_frame(rig, missing);
        }
        send_again(rig);
        return;
    }
    struct bytes messages = bytes_of(p->bytes, p->n);
    if (lane_in_take(&rig->in, p->sequence, p->epoch, rig->view_epoch, messages) == LANE_DELIVER) {
        deliver(rig, messages);
        lane_in_done(&rig->in, messages.n);
        drain(rig);
    }
}

/* ---- Time ---- */

static void step(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->link_n;) {
        struct parcel p = rig->link[i];
        if (p.due_us > rig->now_us) {
            i++;
            continue;
        }
        /* In the order of posting among those that are due, but for the last that fills the gap:
         * a little more disorder. */
        if (rig->faults.late_us == 0) {
            memmove(&rig->link[i], &rig->link[i + 1], (rig->link_n - i - 1) * sizeof rig->link[0]);
            rig->link_n--;
        } else {
            rig->link[i] = rig->link[--rig->link_n];
        }
        arrive(rig, &p);
        free(p.bytes);
    }
    if (lane_in_urgent(&rig->in) || (rig->in.owed > 0 && rig->now_us % (4 * STEP_US) == 0)) {
        send_ack(rig);
    }
    struct timer *t;
    wheel_advance(&rig->wheel, rig->now_us);
    while ((t = wheel_take(&rig->wheel)) != NULL) {
        if (lane_out_due(&rig->out) <= rig->now_us) {
            lane_out_timeout(&rig->out);
            send_again(rig);
        }
        if (lane_out_due(&rig->out) != UINT64_MAX) {
            wheel_arm(&rig->wheel, &rig->out.timer, lane_out_due(&rig->out));
        }
    }
    lane_in_check(&(struct lane_in){
        .early = rig->in.early, .early_n = rig->in.early_n, .early_bytes = rig->in.early_bytes});
    lane_out_check(&rig->out);
    rig->now_us += STEP_US;
}

static void send_message(struct rig *rig, uint32_t n)
{
    uint64_t number = ++rig->sent;
    if (n > LANE_FRAME_FULL) {
        if (rig->out.open_bytes > 0) {
            send_frame(rig, lane_out_close(&rig->out, rig->epoch, rig->now_us));
        }
        uint8_t *room;
        uint64_t sequence = lane_out_large(&rig->out, n, rig->epoch, rig->now_us, &room);
        message_write(room, n, number, rig->epoch);
        send_frame(rig, sequence);
        return;
    }
    if (lane_out_full(&rig->out, n)) {
        send_frame(rig, lane_out_close(&rig->out, rig->epoch, rig->now_us));
    }
    message_write(lane_out_room(&rig->out, n), n, number, rig->epoch);
}

static void flush(struct rig *rig)
{
    if (rig->out.open_bytes > 0) {
        send_frame(rig, lane_out_close(&rig->out, rig->epoch, rig->now_us));
    }
}

static void settle(struct rig *rig, uint64_t bound_us)
{
    rig->view_epoch = rig->epoch;
    drain(rig);
    uint64_t until = rig->now_us + bound_us;
    while (rig->delivered < rig->sent || rig->out.acked < rig->out.last) {
        assert_true(rig->now_us < until);
        step(rig);
    }
    assert_int_equal(rig->out.bytes, 0);
    assert_int_equal(rig->in.early_n, 0);
}

static uint32_t some_size(struct rig *rig)
{
    uint64_t r = random_below(&rig->random, 1000);
    uint64_t most = r < 900 ? 200 : r < 990 ? 5000 : r < 998 ? LANE_FRAME_FULL + 10 : 400000;
    return MESSAGE_HEAD + (uint32_t)random_below(&rig->random, most);
}

static void run(uint64_t seed, struct faults faults, uint32_t rounds)
{
    struct rig *rig = rig_create(seed, faults);
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t n = rig->out.bytes > LANE_KEPT_MAX ? 0 : random_below(&rig->random, 20);
        for (uint64_t k = 0; k < n; k++) {
            send_message(rig, some_size(rig));
        }
        flush(rig);
        if (random_below(&rig->random, 50) == 0) {
            rig->epoch++;
        }
        if (random_below(&rig->random, 20) == 0) {
            rig->view_epoch = rig->epoch;
            drain(rig);
        }
        if (random_below(&rig->random, 400) == 0) {
            end(rig);
            begin(rig);
        }
        step(rig);
    }
    struct faults mild = {.lost = faults.lost / 2, .doubled = faults.doubled};
    rig->faults = mild;
    settle(rig, 20000000);
    rig_destroy(rig);
}

static void what_is_delivered_is_what_was_sent(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run(seed, (struct faults){.lost = 200, .doubled = 100, .late_us = 5000}, 400);
        run(seed, (struct faults){.lost = 20, .doubled = 500, .late_us = 500}, 400);
        run(seed, (struct faults){.lost = 600}, 200);
    }
}

static void an_honest_link_sees_each_frame_once(void **state)
{
    (void)state;
    struct rig *rig = rig_create(7, (struct faults){.lost = 0});
    for (uint32_t i = 0; i < 2000; i++) {
        for (uint32_t k = 0; k < 5; k++) {
            send_message(rig, 100);
        }
        flush(rig);
        step(rig);
    }
    settle(rig, 100000);
    assert_int_equal(rig->again, 0);
    assert_int_equal(rig->frames, 2000);
    rig_destroy(rig);
}

/* One frame is lost: what follows says so, and it comes again long before its time has passed. */
static void a_gap_is_filled_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_create(8, (struct faults){.lost = 0});
    rig->faults.lost = 1000;
    send_message(rig, 100);
    flush(rig);
    rig->faults.lost = 0;
    send_message(rig, 100);
    flush(rig);
    for (uint32_t i = 0; i < 8; i++) {
        step(rig);
    }
    assert_int_equal(rig->delivered, 2);
    assert_int_equal(rig->again, 1);
    assert_true(rig->now_us < LANE_RTO_MIN_US);
    rig_destroy(rig);
}

/* The sender is a view ahead: nothing is consumed, nothing is lost, and what does not fit comes
 * again. */
static void a_newer_epoch_waits_for_its_adoption(void **state)
{
    (void)state;
    struct rig *rig = rig_create(9, (struct faults){.lost = 0});
    send_message(rig, 100);
    flush(rig);
    rig->epoch = 2;
    for (uint32_t i = 0; i < 3 * LANE_WINDOW; i++) {
        send_message(rig, 100);
        flush(rig);
    }
    for (uint32_t i = 0; i < 40; i++) {
        step(rig);
    }
    assert_int_equal(rig->delivered, 1);
    assert_int_equal(rig->out.acked, 1);
    assert_int_equal(rig->in.early_n, LANE_WINDOW);
    settle(rig, 1000000);
    assert_int_equal(rig->delivered, 1 + 3 * LANE_WINDOW);
    rig_destroy(rig);
}

/* A receiver that is silent is not flooded: the same few frames, ever more seldom. */
static void sending_again_backs_off(void **state)
{
    (void)state;
    struct rig *rig = rig_create(10, (struct faults){.lost = 1000});
    for (uint32_t i = 0; i < 200; i++) {
        send_message(rig, 100);
        flush(rig);
    }
    for (uint32_t i = 0; i < 10000000 / STEP_US; i++) {
        step(rig);
    }
    assert_true(rig->again >= 10 * LANE_AGAIN_FRAMES && rig->again <= 30 * LANE_AGAIN_FRAMES);
    rig_destroy(rig);
}

/* The ring grows while the receiver is silent, and its memory goes when all is consumed. */
static void kept_bytes_grow_and_shrink(void **state)
{
    (void)state;
    struct rig *rig = rig_create(11, (struct faults){.lost = 1000});
    for (uint32_t i = 0; i < 600; i++) {
        send_message(rig, LANE_FRAME_FULL - 10);
        flush(rig);
        step(rig);
    }
    assert_true(rig->out.bytes > 8 * LANE_KEPT_MAX);
    assert_true(rig->out.ring_bytes >= rig->out.bytes);
    rig->faults.lost = 0;
    settle(rig, 10000000);
    assert_true(rig->out.ring_bytes <= 2 * LANE_KEPT_MAX);
    rig_destroy(rig);
}

static void a_hostile_sender_is_bounded(void **state)
{
    (void)state;
    struct lane_in in;
    uint8_t bytes[1000] = {0};
    uint8_t *large = calloc(1, LANE_WINDOW_BYTES + 1);
    assert_non_null(large);
    lane_in_init(&in, 0, 0, 0, 4);
    struct bytes small = bytes_of(bytes, sizeof bytes);
    assert_int_equal(lane_in_take(&in, UINT64_MAX, 1, 1, small), LANE_AHEAD);
    assert_int_equal(lane_in_take(&in, LANE_WINDOW + 1, 1, 1, small), LANE_AHEAD);
    assert_int_equal(lane_in_take(&in, 2, 1, 1, bytes_of(large, LANE_WINDOW_BYTES + 1)),
                     LANE_AHEAD);
    assert_int_equal(lane_in_take(&in, LANE_WINDOW, 1, 1, small), LANE_KEPT);
    assert_int_equal(lane_in_take(&in, LANE_WINDOW, 1, 1, small), LANE_DUPLICATE);
    assert_int_equal(lane_in_take(&in, 2, 1, 1, bytes_of(large, LANE_WINDOW_BYTES - 999)),
                     LANE_AHEAD);
    assert_int_equal(lane_in_take(&in, 2, 1, 1, bytes_of(large, LANE_WINDOW_BYTES - 1000)),
                     LANE_KEPT);
    assert_int_equal(in.early_bytes, LANE_WINDOW_BYTES);
    assert_true(lane_in_gap(&in));
    /* The next one needs no room. */
    assert_int_equal(lane_in_take(&in, 1, 1, 1, small), LANE_DELIVER);
    assert_int_equal(lane_in_take(&in, 0, 1, 1, small), LANE_DUPLICATE);
    lane_in_deinit(&in);
    free(large);

    struct lane_out out;
    lane_out_init(&out, 1, 0, 3);
    assert_false(lane_out_ack(&out, 1, 0));
    assert_true(lane_out_ack(&out, 0, 0));
    assert_int_equal(lane_out_gap(&out, 0), 0);
    assert_int_equal(lane_out_due(&out), UINT64_MAX);
    lane_out_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_delivered_is_what_was_sent),
        cmocka_unit_test(an_honest_link_sees_each_frame_once),
        cmocka_unit_test(a_gap_is_filled_at_once),
        cmocka_unit_test(a_newer_epoch_waits_for_its_adoption),
        cmocka_unit_test(sending_again_backs_off),
        cmocka_unit_test(kept_bytes_grow_and_shrink),
        cmocka_unit_test(a_hostile_sender_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
