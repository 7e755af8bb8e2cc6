/* Voter ([Z] 5.2): a voter gives a contestant a vote. The balancer sends all votes for a contestant
 * to one place; each place has a few contestants, of which the first has the most votes. When
 * popularity shifts, the first contestants change places: that of each place comes from a worker of
 * the node before, with the voters that vote for it. */
#include "load/work_internal.h"

enum { CONTESTANTS, VOTERS };
#define CONTESTANTS_N 20u
#define POPULARITY 0.99

static int voter_open(struct work *w)
{
    struct keys_config config = {.n = CONTESTANTS_N, .exponent = POPULARITY};
    keys_init(&w->keys, &config);
    return 0;
}

static uint64_t voter_fill_count(const struct work *w)
{
    return CONTESTANTS_N + w->per_place;
}

static bool voter_fill(const struct work *w, uint32_t place, uint64_t number, struct work_txn *txn)
{
    work_begin(txn, 0);
    bool contestant = number < CONTESTANTS_N;
    uint32_t id = (uint32_t)(contestant ? number : number - CONTESTANTS_N);
    work_op(w, txn, place, place, OP_SET, contestant ? CONTESTANTS : VOTERS, id)->value =
        bytes_of("0", 1);
    return true;
}

/* Whose first contestant a place has now. */
static uint32_t first_home(const struct work *w, uint32_t place)
{
    if (w->config.shift == 0) {
        return place;
    }
    uint64_t shifts = w->at[place].drawn / w->config.shift % w->config.nodes;
    return (place + w->places - (uint32_t)shifts * w->config.workers) % w->places;
}

static void voter_draw(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    uint32_t contestant = (uint32_t)keys_draw(&w->keys, random);
    uint32_t home = contestant == 0 ? first_home(w, place) : place;
    uint32_t voter_home = home;
    /* Voters of a contestant: those whose number is its own, modulo all contestants. */
    uint32_t voters = w->per_place / CONTESTANTS_N;
    uint32_t voter = (uint32_t)random_below(random, voters) * CONTESTANTS_N + contestant;
    if (w->config.remote >= 0.0) {
        voter_home = home == place ? work_where(w, place, random) : home;
    }
    work_begin(txn, 0);
    work_op(w, txn, place, voter_home, OP_ADD, VOTERS, voter)->number = 1;
    work_op(w, txn, place, home, OP_ADD, CONTESTANTS, contestant)->number = 1;
}

const struct work_ops work_voter = {
    .names = {"vote"},
    .success = {1.0},
    .types = 1,
    .defaults = {.objects = 100000, .shift = 200000, .remote = -1.0},
    .open = voter_open,
    .fill_count = voter_fill_count,
    .fill = voter_fill,
    .draw = voter_draw,
};
