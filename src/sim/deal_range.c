/* Deals where rows are in tables: ranges, insertions, deletions. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/world.h"

static bool chance(struct world *world, uint32_t permille)
{
    return random_chance(&world->chance_traders, 1000 * permille);
}

static uint32_t below(struct world *world, uint32_t n)
{
    return (uint32_t)random_below(&world->chance_traders, n);
}

bool deal_has_ranges(const struct world *world)
{
    return (world->setup.engine->traits & ENGINE_TABLES) != 0;
}

enum deal_kind deal_range_draw(struct world *world)
{
    static const uint8_t kinds[] = {
        DEAL_GET,   DEAL_SET,   DEAL_READ,   DEAL_READ,  DEAL_WRITE, DEAL_WRITE,   DEAL_MIXED,
        DEAL_MIXED, DEAL_MIXED, DEAL_LOOK,   DEAL_CLAIM, DEAL_RANGE, DEAL_RANGE,   DEAL_RANGE,
        DEAL_FILL,  DEAL_FILL,  DEAL_FILL,   DEAL_FILL,  DEAL_ERASE, DEAL_ERASE,   DEAL_ERASE,
        DEAL_CLEAR, DEAL_CLEAR, DEAL_SPAN,   DEAL_SPAN,  DEAL_PAY,   DEAL_PAY,     DEAL_PAY,
        DEAL_PEEK,  DEAL_PEEK,  DEAL_RENAME, DEAL_AUDIT, DEAL_AUDIT, DEAL_CONTROL,
    };
    return (enum deal_kind)kinds[below(world, sizeof kinds)];
}

/* ---- What to ask ---- */

static struct bytes edge_bytes(const struct world *world, uint32_t key)
{
    const struct traders *ts = &world->traders;
    uint32_t traded = world->setup.traded;
    const struct trade_key *k = &ts->keys[key];
    if (key == traded || key == traded + world->setup.accounts) {
        k = &ts->edges[key != traded];
    }
    return bytes_of(k->bytes, k->n);
}

struct deal_range *deal_range_add(struct world *world, struct deal *deal, uint32_t kind,
                                  uint32_t first, uint32_t end)
{
    uint32_t i = deal->request.ops_n;
    struct op *op = deal_add_op(world, deal, first, OP_GET);
    struct deal_range *r = calloc(1, sizeof *r);
    HK_ASSERT(r != NULL);
    r->first = first;
    r->end = end;
    deal->ranges[i] = r;
    op->kind = (uint8_t)kind;
    op->arg = edge_bytes(world, end);
    return r;
}

static void limit(struct deal *deal, uint32_t most, bool reverse)
{
    uint32_t i = deal->request.ops_n - 1;
    struct deal_range *r = deal->ranges[i];
    r->limit = most;
    r->reverse = reverse;
    deal->ops[i].number = most;
    deal->ops[i].flags = reverse ? TXN_OPF_REVERSE : 0;
}

/* Often all of them, else some that stand side by side. */
static void draw_bounds(struct world *world, uint32_t *first_out, uint32_t *end_out)
{
    uint32_t n = world->setup.traded;
    *first_out = chance(world, 400) ? 0 : below(world, n);
    *end_out = chance(world, 400) ? n : *first_out + 1 + below(world, n - *first_out);
}

static void draw_limit(struct world *world, struct deal *deal)
{
    bool reverse = chance(world, 400);
    limit(deal, chance(world, 500) ? 0 : 1 + below(world, 3), reverse);
}

static void fill_range(struct world *world, struct deal *deal)
{
    uint32_t first;
    uint32_t end;
    draw_bounds(world, &first, &end);
    (void)deal_range_add(world, deal, TXN_OP_RANGE, first, end);
    draw_limit(world, deal);
    if (chance(world, 300)) {
        (void)deal_range_add(world, deal, TXN_OP_RANGE_COUNT, first, end);
        limit(deal, deal->ranges[0]->limit, deal->ranges[0]->reverse);
    }
    if (chance(world, 300)) {
        draw_bounds(world, &first, &end);
        (void)deal_range_add(world, deal, TXN_OP_RANGE, first, end);
        draw_limit(world, deal);
    }
    if (chance(world, 300)) {
        deal_add_read(world, deal, below(world, world->setup.traded));
    }
}

/* Who sees an empty place takes it: two of them are the phantom of all books. */
static void fill_fill(struct world *world, struct deal *deal)
{
    uint32_t first;
    uint32_t end;
    draw_bounds(world, &first, &end);
    (void)deal_range_add(world, deal, TXN_OP_RANGE, first, end);
    draw_limit(world, deal);
    uint32_t key = first + below(world, end - first);
    if (chance(world, 300)) {
        deal_add_read(world, deal, key);
    }
    (void)deal_add_write(world, deal, key);
    if (chance(world, 300)) {
        (void)deal_add_write(world, deal, below(world, world->setup.traded));
    }
    if (chance(world, 300)) {
        (void)deal_range_add(world, deal, TXN_OP_RANGE, first, end);
        draw_limit(world, deal);
    }
}

static void fill_erase(struct world *world, struct deal *deal)
{
    uint32_t n = world->setup.traded;
    uint32_t key = below(world, n);
    for (uint32_t i = 0, most = 1 + below(world, 3); i < most && i < n; i++) {
        deal_add_read(world, deal, key);
        (void)deal_add_op(world, deal, key, OP_DELETE);
        key = (key + 1) % n;
    }
    if (chance(world, 300) && n > 3) {
        (void)deal_add_write(world, deal, key);
    }
}

/* What is deleted is known from the range in front of it. */
static void fill_clear(struct world *world, struct deal *deal)
{
    uint32_t first;
    uint32_t end;
    draw_bounds(world, &first, &end);
    (void)deal_range_add(world, deal, TXN_OP_RANGE, first, end);
    draw_limit(world, deal);
    (void)deal_range_add(world, deal, TXN_OP_RANGE_DELETE, first, end);
    limit(deal, deal->ranges[0]->limit, deal->ranges[0]->reverse);
    if (chance(world, 300)) {
        (void)deal_range_add(world, deal, TXN_OP_RANGE, first, end);
    }
}

void deal_range_fill(struct world *world, struct deal *deal)
{
    uint32_t first;
    uint32_t end;
    switch ((uint32_t)deal->kind) {
    case DEAL_RANGE:
        fill_range(world, deal);
        break;
    case DEAL_FILL:
        fill_fill(world, deal);
        break;
    case DEAL_ERASE:
        fill_erase(world, deal);
        break;
    case DEAL_CLEAR:
        fill_clear(world, deal);
        break;
    default:
        draw_bounds(world, &first, &end);
        (void)deal_range_add(world, deal, TXN_OP_RANGE, first, end);
        draw_limit(world, deal);
    }
}

/* ---- What came of it ---- */

bool deal_range_covers(const struct deal_range *r, uint32_t key)
{
    bool full = r->limit != 0 && r->n == r->limit;
    if (!r->answered || !full) {
        return key >= r->first && key < r->end;
    }
    return r->reverse ? key >= r->found[0].key && key < r->end
                      : key >= r->first && key <= r->found[r->n - 1].key;
}

static bool find_key(const struct world *world, struct bytes bytes, uint32_t *key_out)
{
    for (uint32_t i = 0; i < world->setup.traded + world->setup.accounts; i++) {
        const struct trade_key *k = &world->traders.keys[i];
        if (k->n == bytes.n && memcmp(k->bytes, bytes.at, bytes.n) == 0) {
            *key_out = i;
            return true;
        }
    }
    return false;
}

static const char *take_pairs(const struct world *world, struct deal_range *r,
                              const struct answer *answer)
{
    struct bytes rest = answer->value;
    struct bytes key;
    struct bytes value;
    uint32_t last = 0;
    while (txn_pair_take(&rest, &key, &value)) {
        uint32_t k = 0;
        int64_t number = 0;
        if (!find_key(world, key, &k) || k < r->first || k >= r->end) {
            return "a range that has what is not in it";
        }
        if (r->n > 0 && (r->reverse ? k >= last : k <= last)) {
            return "a range out of order";
        }
        if (r->limit != 0 && r->n == r->limit) {
            return "a range that has more than its limit";
        }
        enum key_class class = k < world->setup.traded ? KEY_GENERAL : KEY_COUNTER;
        if (!value_decode(class, world->setup.value_profile, value, &number)) {
            return "a value that nobody wrote";
        }
        last = k;
        r->found[r->n++] = (struct txn_found){k, (uint64_t)number};
    }
    for (uint32_t i = 0; r->reverse && i < r->n / 2; i++) {
        struct txn_found kept = r->found[i];
        r->found[i] = r->found[r->n - 1 - i];
        r->found[r->n - 1 - i] = kept;
    }
    return (uint64_t)answer->number == r->n ? NULL : "another number of rows than it says";
}

const char *deal_range_understand(const struct world *world, struct deal *deal, uint32_t i,
                                  const struct answer *answer, uint64_t version)
{
    struct deal_range *r = deal->ranges[i];
    deal->items[i].version = version;
    deal->items[i].number = answer->number;
    r->answered = true;
    if (deal->ops[i].kind == TXN_OP_RANGE) {
        return answer->kind == ANSWER_PAIRS ? take_pairs(world, r, answer)
                                            : "an answer that is none to a range";
    }
    /* The range in front of it has the same bounds, and nothing is between. */
    const struct deal_range *same = deal->ranges[i - 1];
    if (answer->kind != ANSWER_NUMBER || answer->number != same->n) {
        return "a number that is not how many there are";
    }
    r->n = same->n;
    memcpy(r->found, same->found, sizeof r->found);
    return NULL;
}

struct deal *deal_range_follow(struct world *world, struct trader *trader, const struct deal *span)
{
    struct deal *deal = deal_add(world, trader, DEAL_HOLD);
    const struct deal_range *r = span->ranges[0];
    const struct op *op = &span->ops[0];
    struct deal_range *held = malloc(sizeof *held);
    HK_ASSERT(held != NULL);
    *held = *r;
    deal->held[0] = held;
    deal->watches[0] = (struct txn_watch){
        .key = op->key,
        .version = span->items[0].version,
        .range = true,
        .flags = op->flags,
        .limit = (uint32_t)op->number,
        .end = op->arg,
    };
    deal->request.watches_n = 1;
    (void)deal_add_write(world, deal, r->first + below(world, r->end - r->first));
    if (chance(world, 300)) {
        (void)deal_add_write(world, deal, below(world, world->setup.traded));
    }
    return deal;
}
