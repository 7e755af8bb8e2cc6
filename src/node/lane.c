#include "node/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define RING_FIRST (128u * 1024u)
#define KEPT_FIRST 64u
/* A ring that has grown beyond this is freed when it is empty. */
#define RING_WARM (2u * LANE_KEPT_MAX)

/* ---- The sender's ring ---- */

void lane_out_init(struct lane_out *lane, uint8_t to, uint8_t target_worker, uint8_t timer_kind)
{
    *lane = (struct lane_out){
        .to = to, .target_worker = target_worker, .again_next = 1, .again_end = 1};
    lane->rto_us = LANE_RTO_FIRST_US;
    list_init(&lane->pending);
    timer_init(&lane->timer, timer_kind);
}

struct lane_kept *lane_out_kept(const struct lane_out *lane, uint64_t sequence)
{
    HK_ASSERT(sequence > lane->acked && sequence <= lane->last);
    return &lane->kept[sequence & (lane->kept_max - 1)];
}

static uint8_t *ring_at(const struct lane_out *lane, uint64_t position)
{
    return lane->ring + (position & (lane->ring_bytes - 1));
}

uint8_t *lane_out_frame(const struct lane_out *lane, const struct lane_kept *kept)
{
    return kept->large != NULL ? kept->large : ring_at(lane, kept->at);
}

void lane_out_deinit(struct lane_out *lane)
{
    for (uint64_t i = lane->acked + 1; i <= lane->last; i++) {
        free(lane_out_kept(lane, i)->large);
    }
    free(lane->ring);
    free(lane->kept);
    lane->ring = NULL;
    lane->kept = NULL;
}

/* Whether n bytes at the position lie in one piece and behind everything that is kept. */
static bool ring_fits(const struct lane_out *lane, uint64_t position, uint32_t n)
{
    return lane->ring_bytes > 0 && (position & (lane->ring_bytes - 1)) + n <= lane->ring_bytes &&
           position + n - lane->tail <= lane->ring_bytes;
}

static uint64_t aligned(uint64_t position)
{
    return (position + 7u) & ~(uint64_t)7u;
}

/* The ring is moved to a larger one, in which `need` bytes fit behind the kept frames. `filled`
 * bytes of the open frame go along. */
static void ring_grow(struct lane_out *lane, uint32_t filled, uint32_t need)
{
    uint64_t live = 0;
    for (uint64_t i = lane->acked + 1; i <= lane->last; i++) {
        const struct lane_kept *kept = lane_out_kept(lane, i);
        live += kept->large == NULL ? aligned(kept->bytes) : 0;
    }
    uint64_t bytes = lane->ring_bytes != 0 ? 2u * (uint64_t)lane->ring_bytes : RING_FIRST;
    while (bytes < live + need) {
        bytes *= 2;
    }
    /* What is kept is bounded by the updates in progress; a process without so much memory cannot
     * go on honestly. */
    HK_ASSERT(bytes <= UINT32_MAX / 2);
    uint8_t *ring = malloc(bytes);
    HK_ASSERT(ring != NULL);
    uint64_t at = 0;
    for (uint64_t i = lane->acked + 1; i <= lane->last; i++) {
        struct lane_kept *kept = lane_out_kept(lane, i);
        if (kept->large == NULL) {
            memcpy(ring + at, ring_at(lane, kept->at), kept->bytes);
            kept->at = at;
            at = aligned(at + kept->bytes);
        }
    }
    if (filled > 0) {
        memcpy(ring + at, ring_at(lane, lane->open_at), filled);
    }
    free(lane->ring);
    lane->ring = ring;
    lane->ring_bytes = (uint32_t)bytes;
    lane->tail = 0;
    lane->open_at = at;
}

/* Sees to it that the open frame can grow from `filled` to `need` bytes. */
static void ring_reserve(struct lane_out *lane, uint32_t filled, uint32_t need)
{
    if (ring_fits(lane, lane->open_at, need)) {
        return;
    }
    uint64_t start =
        lane->ring_bytes == 0 ? 0 : (lane->open_at | (uint64_t)(lane->ring_bytes - 1)) + 1;
    if (!ring_fits(lane, start, need)) {
        ring_grow(lane, filled, need);
        return;
    }
    if (filled > 0) {
        memmove(ring_at(lane, start), ring_at(lane, lane->open_at), filled);
    }
    lane->open_at = start;
}

uint8_t *lane_out_room(struct lane_out *lane, uint32_t n)
{
    uint32_t filled = lane->open_bytes;
    if (filled == 0) {
        lane->open_at = lane->head;
        ring_reserve(lane, 0, LANE_FRAME_HEAD + n);
        filled = LANE_FRAME_HEAD;
    } else {
        ring_reserve(lane, filled, filled + n);
    }
    lane->open_bytes = filled + n;
    return ring_at(lane, lane->open_at) + filled;
}

static struct lane_kept *keep(struct lane_out *lane, uint32_t bytes, uint32_t epoch,
                              uint64_t now_us)
{
    if (lane->last - lane->acked == lane->kept_max) {
        uint32_t most = lane->kept_max != 0 ? 2 * lane->kept_max : KEPT_FIRST;
        struct lane_kept *kept = calloc(most, sizeof *kept);
        HK_ASSERT(kept != NULL); /* as in ring_grow */
        for (uint64_t i = lane->acked + 1; i <= lane->last; i++) {
            kept[i & (most - 1)] = *lane_out_kept(lane, i);
        }
        free(lane->kept);
        lane->kept = kept;
        lane->kept_max = most;
    }
    if (lane->last == lane->acked) {
        lane->progress_us = now_us;
    }
    lane->last++;
    lane->bytes += bytes;
    struct lane_kept *kept = lane_out_kept(lane, lane->last);
    *kept = (struct lane_kept){.bytes = bytes, .epoch = epoch, .sent_us = now_us};
    return kept;
}

uint64_t lane_out_close(struct lane_out *lane, uint32_t epoch, uint64_t now_us)
{
    HK_ASSERT(lane->open_bytes > LANE_FRAME_HEAD);
    struct lane_kept *kept = keep(lane, lane->open_bytes, epoch, now_us);
    kept->at = lane->open_at;
    lane->head = aligned(lane->open_at + lane->open_bytes);
    lane->open_bytes = 0;
    return lane->last;
}

uint64_t lane_out_large(struct lane_out *lane, uint32_t n, uint32_t epoch, uint64_t now_us,
                        uint8_t **room_out)
{
    HK_ASSERT(lane->open_bytes == 0 && n <= FRAME_BODY_MAX - LANE_HEAD);
    struct lane_kept *kept = keep(lane, LANE_FRAME_HEAD + n, epoch, now_us);
    kept->large = malloc(kept->bytes);
    HK_ASSERT(kept->large != NULL); /* as in ring_grow */
    *room_out = kept->large + LANE_FRAME_HEAD;
    return lane->last;
}

/* ---- The sender's acknowledgements and time ---- */

/* What is kept no more frees its place in the ring. */
static void ring_trim(struct lane_out *lane)
{
    for (uint64_t i = lane->acked + 1; i <= lane->last; i++) {
        const struct lane_kept *kept = lane_out_kept(lane, i);
        if (kept->large == NULL) {
            lane->tail = kept->at;
            return;
        }
    }
    if (lane->open_bytes > 0) {
        lane->tail = lane->open_at;
        return;
    }
    /* Empty: the next frame begins where the memory is warm. */
    lane->head = 0;
    lane->tail = 0;
    if (lane->ring_bytes > RING_WARM) {
        free(lane->ring);
        lane->ring = NULL;
        lane->ring_bytes = 0;
    }
}

static uint32_t difference(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

static void round_trip(struct lane_out *lane, uint64_t rtt)
{
    uint32_t rtt_us = rtt < LANE_RTO_MAX_US ? (uint32_t)rtt : LANE_RTO_MAX_US;
    if (lane->srtt_us == 0) {
        lane->srtt_us = rtt_us + 1;
        lane->rttvar_us = rtt_us / 2;
    } else {
        lane->rttvar_us = (3 * lane->rttvar_us + difference(lane->srtt_us, rtt_us)) / 4;
        lane->srtt_us = (7 * lane->srtt_us + rtt_us) / 8 + 1;
    }
}

static void reset_rto(struct lane_out *lane)
{
    uint32_t rto_us =
        lane->srtt_us == 0 ? LANE_RTO_FIRST_US : lane->srtt_us + 4 * lane->rttvar_us + LANE_ACK_US;
    rto_us = rto_us < LANE_RTO_MIN_US ? LANE_RTO_MIN_US : rto_us;
    lane->rto_us = rto_us < LANE_RTO_MAX_US ? rto_us : LANE_RTO_MAX_US;
}

bool lane_out_ack(struct lane_out *lane, uint64_t acked, uint64_t now_us)
{
    if (acked > lane->last) {
        return false;
    }
    if (acked <= lane->acked) {
        return true;
    }
    const struct lane_kept *newest = lane_out_kept(lane, acked);
    if (!newest->again) {
        round_trip(lane, now_us - newest->sent_us);
    }
    for (uint64_t i = lane->acked + 1; i <= acked; i++) {
        struct lane_kept *kept = lane_out_kept(lane, i);
        lane->bytes -= kept->bytes;
        free(kept->large);
        kept->large = NULL;
    }
    lane->acked = acked;
    lane->progress_us = now_us;
    if (lane->again_next <= acked) {
        lane->again_next = acked + 1;
    }
    reset_rto(lane);
    ring_trim(lane);
    return true;
}

static void note_again(struct lane_out *lane, uint64_t sequence, uint64_t now_us)
{
    struct lane_kept *kept = lane_out_kept(lane, sequence);
    kept->again = true;
    kept->sent_us = now_us;
}

uint64_t lane_out_gap(struct lane_out *lane, uint64_t now_us)
{
    uint64_t missing = lane->acked + 1;
    if (lane->acked == lane->last || lane->gap_answered >= missing) {
        return 0;
    }
    lane->gap_answered = missing;
    note_again(lane, missing, now_us);
    return missing;
}

uint64_t lane_out_due(const struct lane_out *lane)
{
    return lane->acked == lane->last ? UINT64_MAX
                                     : lane_out_kept(lane, lane->acked + 1)->sent_us + lane->rto_us;
}

void lane_out_timeout(struct lane_out *lane)
{
    lane->rto_us = 2 * lane->rto_us < LANE_RTO_MAX_US ? 2 * lane->rto_us : LANE_RTO_MAX_US;
    lane->again_next = lane->acked + 1;
    lane->again_end = lane->last + 1;
}

uint64_t lane_out_again(struct lane_out *lane, uint64_t now_us)
{
    if (lane->again_next >= lane->again_end || lane->again_next > lane->acked + LANE_AGAIN_FRAMES) {
        return 0;
    }
    note_again(lane, lane->again_next, now_us);
    return lane->again_next++;
}

void lane_out_check(const struct lane_out *lane)
{
    uint64_t bytes = 0;
    for (uint64_t i = lane->acked + 1; i <= lane->last; i++) {
        const struct lane_kept *kept = lane_out_kept(lane, i);
        bytes += kept->bytes;
        HK_ASSERT(kept->bytes > LANE_FRAME_HEAD && kept->epoch != 0);
        HK_ASSERT(kept->large != NULL ||
                  (kept->at >= lane->tail && ring_fits(lane, kept->at, kept->bytes)));
    }
    HK_ASSERT(bytes == lane->bytes);
    HK_ASSERT(lane->open_bytes == 0 || !list_empty(&lane->pending));
    HK_ASSERT(lane->acked == lane->last || lane->timer.place != TIMER_IDLE);
}

/* ---- The receiver ---- */

void lane_in_init(struct lane_in *lane, uint8_t from, uint8_t source_worker, uint8_t target_worker,
                  uint8_t timer_kind)
{
    *lane = (struct lane_in){.from = from, .source_worker = source_worker, .lane = target_worker};
    list_init(&lane->pending);
    timer_init(&lane->timer, timer_kind);
}

void lane_in_deinit(struct lane_in *lane)
{
    for (uint32_t i = 0; lane->early != NULL && i < LANE_WINDOW; i++) {
        free(lane->early[i].bytes);
    }
    free(lane->early);
    lane->early = NULL;
}

static struct lane_early *early_of(const struct lane_in *lane, uint64_t sequence)
{
    return &lane->early[sequence % LANE_WINDOW];
}

static enum lane_verdict keep_early(struct lane_in *lane, uint64_t sequence, uint32_t epoch,
                                    struct bytes messages)
{
    if (sequence > lane->delivered + LANE_WINDOW ||
        messages.n > LANE_WINDOW_BYTES - lane->early_bytes) {
        return LANE_AHEAD;
    }
    if (lane->early == NULL) {
        lane->early = calloc(LANE_WINDOW, sizeof *lane->early);
    }
    if (lane->early == NULL) {
        return LANE_AHEAD;
    }
    struct lane_early *early = early_of(lane, sequence);
    if (early->bytes != NULL) {
        return LANE_DUPLICATE;
    }
    early->bytes = malloc(messages.n);
    if (early->bytes == NULL) {
        return LANE_AHEAD;
    }
    memcpy(early->bytes, messages.at, messages.n);
    early->n = messages.n;
    early->epoch = epoch;
    lane->early_n++;
    lane->early_bytes += messages.n;
    return LANE_KEPT;
}

enum lane_verdict lane_in_take(struct lane_in *lane, uint64_t sequence, uint32_t epoch,
                               uint32_t view_epoch, struct bytes messages)
{
    enum lane_verdict verdict = LANE_DUPLICATE;
    if (sequence == lane->delivered + 1 && epoch <= view_epoch) {
        return LANE_DELIVER;
    }
    if (sequence > lane->delivered) {
        verdict = keep_early(lane, sequence, epoch, messages);
    }
    /* What the sender sent in vain it shall hear of. A frame of an epoch to come is no gap; its
     * sender waits for the adoption. */
    lane->at_once |= verdict == LANE_DUPLICATE || lane_in_gap(lane) ||
                     (verdict == LANE_AHEAD && sequence > lane->delivered + 1);
    return verdict;
}

void lane_in_done(struct lane_in *lane, uint32_t bytes)
{
    lane->delivered++;
    lane->owed++;
    lane->owed_bytes += bytes;
    if (lane->early_n > 0) {
        struct lane_early *early = early_of(lane, lane->delivered);
        if (early->bytes != NULL) {
            lane->early_n--;
            lane->early_bytes -= early->n;
            free(early->bytes);
            early->bytes = NULL;
        }
        lane->at_once |= lane_in_gap(lane);
    }
}

bool lane_in_next(const struct lane_in *lane, uint32_t view_epoch, struct bytes *messages_out)
{
    if (lane->early_n == 0) {
        return false;
    }
    const struct lane_early *early = early_of(lane, lane->delivered + 1);
    if (early->bytes == NULL || early->epoch > view_epoch) {
        return false;
    }
    *messages_out = bytes_of(early->bytes, early->n);
    return true;
}

bool lane_in_gap(const struct lane_in *lane)
{
    return lane->early_n > 0 && early_of(lane, lane->delivered + 1)->bytes == NULL;
}

void lane_in_acked(struct lane_in *lane)
{
    lane->at_once = false;
    lane->owed = 0;
    lane->owed_bytes = 0;
}

void lane_in_check(const struct lane_in *lane)
{
    uint32_t n = 0;
    uint32_t bytes = 0;
    for (uint32_t i = 0; lane->early != NULL && i < LANE_WINDOW; i++) {
        n += lane->early[i].bytes != NULL;
        bytes += lane->early[i].bytes != NULL ? lane->early[i].n : 0;
    }
    HK_ASSERT(n == lane->early_n && bytes == lane->early_bytes && bytes <= LANE_WINDOW_BYTES);
    HK_ASSERT(lane->owed == 0 || !list_empty(&lane->pending) || lane->timer.place != TIMER_IDLE);
}
