/* Handovers ([Z] 5.2): the control plane of a cellular network. A phone wakes up (activate, a
 * service request) or goes to sleep (deactivate, a release): transactions over the contexts of the
 * phone and of its base station. A phone on a trip goes from station to station: handover start and
 * handover finish, each over the phone and both stations.
 *
 * Stations of a place stand on a square of SIDE x SIDE, one kilometre apart; the squares of all
 * places form a band that closes upon itself. People make trips of a day's way ([Z]: five a day,
 * 100 km in all for drivers, 20 km for others), in one direction; who is not at home goes
 * home next. So the share of handovers that leave a place follows from the geography, unless it is
 * set: then a handover leaves the node with that probability, to any other node, or home.
 *
 * A phone is at one place at a time. When a handover that leaves has started, the phone goes to the
 * other place's queue, and there it finishes. */
#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "load/work_internal.h"

enum { PHONES, STATIONS };
enum { ACTIVATE, DEACTIVATE, START, FINISH, TYPES };

#define SIDE 16u
#define STATIONS_N (SIDE * SIDE)
#define DRIVERS_PERCENT 50.0
#define DRIVER_HOPS 20u /* 100 km a day, five trips */
#define OTHER_HOPS 4u
#define TRAVELLERS 64u /* phones of a place that are on a trip; the others rest */
#define ARRIVALS 256u  /* handovers of a place that have started and shall finish */
/* Phones come and go, so a place holds more or fewer than are at home there. */
#define SPARE(phones) ((phones) / 4u + 64u)

struct phone {
    uint32_t id; /* of its home's place */
    uint16_t home;
    uint16_t station;
    bool active;
};

struct trip {
    struct phone phone;
    uint16_t old_place, old_station; /* the handover that is to finish */
    uint8_t hops;                    /* that are left */
    uint8_t direction;               /* 0, 1: along the band; 2, 3: across it */
};

enum slot { SLOT_FREE, SLOT_RIDES, SLOT_BUSY };

struct region {
    struct phone *phones; /* that rest here */
    uint32_t phones_n, room;
    struct trip trips[TRAVELLERS];
    uint8_t slots[TRAVELLERS];
    uint32_t trips_n; /* that are not free */

    _Alignas(64) pthread_mutex_t mutex; /* of what follows: neighbours write it */
    struct trip arrivals[ARRIVALS];
    uint32_t arrivals_at, arrivals_n;
};

struct handovers {
    struct region *regions;
};

static int handovers_open(struct work *w)
{
    w->handovers = calloc(1, sizeof *w->handovers);
    if (w->handovers == NULL) {
        return HK_ERR_NOMEM;
    }
    struct region *regions = aligned_alloc(64, w->places * sizeof *regions);
    if (regions == NULL) {
        return HK_ERR_NOMEM;
    }
    memset(regions, 0, w->places * sizeof *regions);
    w->handovers->regions = regions;
    for (uint32_t p = 0; p < w->places; p++) {
        struct region *r = &regions[p];
        pthread_mutex_init(&r->mutex, NULL);
        r->room = w->per_place + SPARE(w->per_place);
        r->phones = calloc(r->room, sizeof *r->phones);
        if (r->phones == NULL) {
            return HK_ERR_NOMEM;
        }
        for (uint32_t i = 0; i < w->per_place; i++) {
            r->phones[r->phones_n++] = (struct phone){
                .id = i, .home = (uint16_t)p, .station = (uint16_t)(work_mix(i) % STATIONS_N)};
        }
    }
    return HK_OK;
}

static void handovers_close(struct work *w)
{
    if (w->handovers == NULL) {
        return;
    }
    for (uint32_t p = 0; w->handovers->regions != NULL && p < w->places; p++) {
        struct region *r = &w->handovers->regions[p];
        if (r->room > 0) {
            pthread_mutex_destroy(&r->mutex);
        }
        free(r->phones);
    }
    free(w->handovers->regions);
    free(w->handovers);
}

static uint64_t handovers_fill_count(const struct work *w)
{
    return STATIONS_N + (uint64_t)w->per_place;
}

static bool handovers_fill(const struct work *w, uint32_t place, uint64_t number,
                           struct work_txn *txn)
{
    bool station = number < STATIONS_N;
    work_begin(txn, 0);
    work_op(w, txn, place, place, OP_SET, station ? STATIONS : PHONES,
            (uint32_t)(station ? number : number - STATIONS_N))
        ->value = work_value(w, w->config.value_bytes);
    return true;
}

/* ---- Trips ---- */

static uint32_t hops_of(const struct work *w, const struct phone *phone)
{
    uint64_t h = work_mix(work_mix(phone->id) ^ phone->home ^ w->config.seed << 32);
    return work_unit(h) * 100.0 < DRIVERS_PERCENT ? DRIVER_HOPS : OTHER_HOPS;
}

/* Towards its home along the band, whichever way is shorter; at home anywhere. */
static uint32_t draw_direction(const struct work *w, uint32_t place, const struct phone *phone,
                               struct random *random)
{
    if (phone->home == place) {
        return (uint32_t)random_below(random, 4);
    }
    uint32_t up = (phone->home + w->places - place) % w->places;
    return 2 * up > w->places ? 1 : 0;
}

/* A phone that rests sets out, if there is room for one more. */
static void set_out(struct work *w, uint32_t place, struct random *random)
{
    struct region *r = &w->handovers->regions[place];
    if (r->trips_n == TRAVELLERS || r->phones_n == 0) {
        return;
    }
    uint32_t i = (uint32_t)random_below(random, r->phones_n), slot = 0;
    while (r->slots[slot] != SLOT_FREE) {
        slot++;
    }
    struct phone phone = r->phones[i];
    r->phones[i] = r->phones[--r->phones_n];
    r->slots[slot] = SLOT_RIDES;
    r->trips_n++;
    r->trips[slot] = (struct trip){.phone = phone,
                                   .hops = (uint8_t)hops_of(w, &phone),
                                   .direction = (uint8_t)draw_direction(w, place, &phone, random)};
}

/* Where there is no room for one more, it is switched off: no transaction names it again. */
static void rest(struct region *r, const struct phone *phone)
{
    if (r->phones_n < r->room) {
        r->phones[r->phones_n++] = *phone;
    }
}

/* The trip goes on from where the phone is, or has ended. */
static void go_on(struct region *r, const struct trip *trip)
{
    uint32_t slot = 0;
    if (trip->hops == 0 || r->trips_n == TRAVELLERS) {
        rest(r, &trip->phone);
        return;
    }
    while (r->slots[slot] != SLOT_FREE) {
        slot++;
    }
    r->trips[slot] = *trip;
    r->slots[slot] = SLOT_RIDES;
    r->trips_n++;
}

/* The station that comes next, as the geography has it, or as the share of handovers that leave
 * says. */
static void next_station(const struct work *w, uint32_t place, const struct trip *trip,
                         struct random *random, uint32_t *place_out, uint32_t *station_out)
{
    uint32_t x = trip->phone.station % SIDE, y = trip->phone.station / SIDE;
    bool along = trip->direction < 2, up = trip->direction % 2 == 0;
    bool border = along && x == (up ? SIDE - 1u : 0u);
    uint32_t to = place;
    if (w->config.remote < 0.0 && border) {
        to = (place + (up ? 1u : w->places - 1u)) % w->places;
    } else if (w->config.remote >= 0.0 && work_percent(random, w->config.remote)) {
        bool home = work_node_of(w, trip->phone.home) == work_node_of(w, place);
        to = home ? work_elsewhere(w, place, random) : trip->phone.home;
    }
    x = along ? (x + (up ? 1u : SIDE - 1u)) % SIDE : x;
    y = along ? y : (y + (up ? 1u : SIDE - 1u)) % SIDE;
    *place_out = to;
    *station_out = y * SIDE + x;
}

/* ---- Transactions ---- */

static void touch(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                  uint32_t table, uint32_t id)
{
    work_op(w, txn, place, home, OP_GETSET, table, id)->value =
        work_value(w, w->config.value_bytes);
}

static void draw_request(struct work *w, uint32_t place, struct random *random,
                         struct work_txn *txn)
{
    struct region *r = &w->handovers->regions[place];
    struct phone *phone = &r->phones[random_below(random, r->phones_n)];
    work_begin(txn, phone->active ? DEACTIVATE : ACTIVATE);
    phone->active = !phone->active;
    touch(w, txn, place, phone->home, PHONES, phone->id);
    touch(w, txn, place, place, STATIONS, phone->station);
}

static bool draw_start(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    struct region *r = &w->handovers->regions[place];
    set_out(w, place, random);
    uint32_t slot = (uint32_t)random_below(random, TRAVELLERS), looked = 0, to, station;
    while (r->slots[slot] != SLOT_RIDES) {
        slot = (slot + 1) % TRAVELLERS;
        if (++looked == TRAVELLERS) {
            return false;
        }
    }
    struct trip *trip = &r->trips[slot];
    next_station(w, place, trip, random, &to, &station);
    work_begin(txn, START);
    touch(w, txn, place, trip->phone.home, PHONES, trip->phone.id);
    touch(w, txn, place, place, STATIONS, trip->phone.station);
    touch(w, txn, place, to, STATIONS, station);
    r->slots[slot] = SLOT_BUSY;
    txn->own[0] = slot;
    txn->own[1] = to;
    txn->own[2] = station;
    return true;
}

static bool draw_finish(struct work *w, uint32_t place, struct work_txn *txn)
{
    struct region *r = &w->handovers->regions[place];
    struct trip trip;
    pthread_mutex_lock(&r->mutex);
    bool any = r->arrivals_n > 0;
    if (any) {
        trip = r->arrivals[r->arrivals_at];
        r->arrivals_at = (r->arrivals_at + 1) % ARRIVALS;
        r->arrivals_n--;
    }
    pthread_mutex_unlock(&r->mutex);
    if (!any) {
        return false;
    }
    work_begin(txn, FINISH);
    touch(w, txn, place, trip.phone.home, PHONES, trip.phone.id);
    touch(w, txn, place, trip.old_place, STATIONS, trip.old_station);
    touch(w, txn, place, place, STATIONS, trip.phone.station);
    txn->own[0] = trip.phone.id;
    txn->own[1] = trip.phone.home;
    txn->own[2] = trip.phone.station;
    txn->own[3] = trip.hops;
    txn->own[4] = trip.direction;
    return true;
}

static void handovers_draw(struct work *w, uint32_t place, struct random *random,
                           struct work_txn *txn)
{
    /* So many percent of the requests: of requests and handovers together it is a bit less. */
    double share = 100.0 * w->config.handovers / (100.0 + w->config.handovers);
    if (draw_finish(w, place, txn)) {
        return;
    }
    if (!work_percent(random, share) || !draw_start(w, place, random, txn)) {
        draw_request(w, place, random, txn);
    }
}

static bool arrive(struct region *r, const struct trip *trip)
{
    pthread_mutex_lock(&r->mutex);
    bool room = r->arrivals_n < ARRIVALS;
    if (room) {
        r->arrivals[(r->arrivals_at + r->arrivals_n++) % ARRIVALS] = *trip;
    }
    pthread_mutex_unlock(&r->mutex);
    return room;
}

/* What did not start is as if it had never been tried; what started finishes where it leads. */
static void started(struct work *w, uint32_t place, const struct work_txn *txn, bool done)
{
    struct region *r = &w->handovers->regions[place];
    uint32_t slot = txn->own[0];
    struct trip trip = r->trips[slot];
    trip.old_place = (uint16_t)place;
    trip.old_station = trip.phone.station;
    trip.phone.station = (uint16_t)txn->own[2];
    trip.hops--;
    if (done && arrive(&w->handovers->regions[txn->own[1]], &trip)) {
        r->slots[slot] = SLOT_FREE;
        r->trips_n--;
    } else {
        r->slots[slot] = SLOT_RIDES;
    }
}

static void handovers_done(struct work *w, uint32_t place, const struct work_txn *txn, bool done)
{
    if (txn->type == START) {
        started(w, place, txn, done);
    } else if (txn->type == FINISH) {
        struct trip trip = {.phone = {.id = txn->own[0],
                                      .home = (uint16_t)txn->own[1],
                                      .station = (uint16_t)txn->own[2],
                                      .active = true},
                            .hops = (uint8_t)txn->own[3],
                            .direction = (uint8_t)txn->own[4]};
        go_on(&w->handovers->regions[place], &trip);
    }
}

const struct work_ops work_handovers = {
    .names = {"activate", "deactivate", "handover_start", "handover_finish"},
    .success = {1.0, 1.0, 1.0, 1.0},
    .types = TYPES,
    .defaults = {.objects = 100000, .value_bytes = 200, .handovers = 5.0, .remote = -1.0},
    .open = handovers_open,
    .close = handovers_close,
    .fill_count = handovers_fill_count,
    .fill = handovers_fill,
    .draw = handovers_draw,
    .done = handovers_done,
};
