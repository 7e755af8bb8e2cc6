#include "tools/torture_bank.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "tools/torture_ops.h"

#define CONNECT_US 1000000u
#define BACKOFF_LEAST_US 3000u
#define BACKOFF_MOST_US 60000u
#define ROUNDS_MAX 6u     /* a transfer that nobody waits for may still be on its way */
#define ROUND_US 500000u  /* between two of them */
#define READ_AT_ONCE 100u /* transfers */
#define TRANSFERS_MAX 300000u
#define NAME_BYTES 48u
#define NO_HEAD (-2)

/* ---- Words ---- */

struct name {
    char text[NAME_BYTES];
};

static struct bytes word(const char *text)
{
    return bytes_of(text, (uint32_t)strlen(text));
}

static struct bytes account_name(const struct torture_bank *bank, uint32_t account,
                                 struct name *name)
{
    /* Two digits: in the order of names they are in that of numbers. */
    snprintf(name->text, sizeof name->text, "account-%u-%02u", bank->generation, account);
    return word(name->text);
}

static struct bytes transfer_name(const struct torture_bank *bank, size_t transfer,
                                  struct name *name)
{
    snprintf(name->text, sizeof name->text, "transfer-%u-%zu", bank->generation, transfer);
    return word(name->text);
}

static struct bytes transfer_value(const struct bank_transfer *t, struct name *name)
{
    snprintf(name->text, sizeof name->text, "%u:%u:%d", t->from, t->to, t->amount);
    return word(name->text);
}

static struct bytes number_text(int64_t number, struct name *name)
{
    snprintf(name->text, sizeof name->text, "%" PRId64, number);
    return word(name->text);
}

static void say(struct torture_bank *bank, struct bank_client *c, uint32_t n,
                const struct bytes *args)
{
    bank->no_memory |= !torture_stream_say(&c->stream, n, args);
}

/* ---- Life ---- */

void torture_bank_init(struct torture_bank *bank, const struct torture_options *options,
                       uint32_t think_us, struct torture_cluster *cluster)
{
    *bank = (struct torture_bank){.options = options, .cluster = cluster, .think_us = think_us};
    random_init(&bank->random, options->seed ^ UINT64_C(0x62616e6b));
    if (torture_transacts(options)) {
        uint32_t wanted = options->clients / 3;
        bank->n = wanted < options->nodes     ? options->nodes
                  : wanted > BANK_CLIENTS_MAX ? BANK_CLIENTS_MAX
                                              : wanted;
    }
    for (uint32_t i = 0; i < bank->n; i++) {
        bank->at[i] = (struct bank_client){.node = 1 + i % options->nodes};
        torture_stream_init(&bank->at[i].stream);
    }
}

void torture_bank_deinit(struct torture_bank *bank)
{
    for (uint32_t i = 0; i < bank->n; i++) {
        torture_stream_deinit(&bank->at[i].stream);
        free(bank->at[i].there);
    }
    free(bank->transfers);
    bank->transfers = NULL;
}

void torture_bank_calm(struct torture_bank *bank)
{
    bank->calm = true;
    for (uint32_t i = 0; i < bank->n; i++) {
        bank->at[i].ok_calm = 0;
    }
}

uint64_t torture_bank_least_calm(const struct torture_bank *bank)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < bank->n; i++) {
        least = bank->at[i].ok_calm < least ? bank->at[i].ok_calm : least;
    }
    return least;
}

bool torture_bank_idle(const struct torture_bank *bank)
{
    for (uint32_t i = 0; i < bank->n; i++) {
        if (bank->at[i].job != BANK_IDLE) {
            return false;
        }
    }
    return true;
}

__attribute__((format(printf, 2, 3))) static void complain(struct torture_bank *bank,
                                                           const char *format, ...)
{
    va_list list;
    if (bank->wrong[0] != '\0') {
        return;
    }
    va_start(list, format);
    vsnprintf(bank->wrong, sizeof bank->wrong, format, list);
    va_end(list);
}

/* ---- Asking ---- */

/* False: there are enough of them, or no memory. */
static bool new_transfer(struct torture_bank *bank, struct bank_client *c)
{
    if (bank->transfers_n == TRANSFERS_MAX) {
        return false;
    }
    if (bank->transfers_n == bank->transfers_max) {
        size_t most = bank->transfers_max == 0 ? 1024 : 2 * bank->transfers_max;
        struct bank_transfer *more = realloc(bank->transfers, most * sizeof *more);
        if (more == NULL) {
            bank->no_memory = true;
            return false;
        }
        bank->transfers = more;
        bank->transfers_max = most;
    }
    /* Half of them among few accounts: there are conflicts. */
    uint32_t among = random_chance(&bank->random, 500000) ? 4 : BANK_ACCOUNTS;
    struct bank_transfer *t = &bank->transfers[bank->transfers_n];
    *t = (struct bank_transfer){
        .amount = (int32_t)random_between(&bank->random, 1, 50),
        .from = (uint8_t)random_below(&bank->random, among),
    };
    t->to = (uint8_t)((t->from + random_between(&bank->random, 1, among - 1)) % among);
    c->transfer = bank->transfers_n++;
    return true;
}

static void say_open(struct torture_bank *bank, struct bank_client *c)
{
    struct name names[BANK_ACCOUNTS];
    struct name money;
    struct bytes args[1 + 2 * BANK_ACCOUNTS] = {word("MSETNX")};
    for (uint32_t i = 0; i < BANK_ACCOUNTS; i++) {
        args[1 + 2 * i] = account_name(bank, i, &names[i]);
        args[2 + 2 * i] = number_text(BANK_OPENING, &money);
    }
    say(bank, c, 1 + 2 * BANK_ACCOUNTS, args);
    c->before = 1;
}

/* MULTI, the two accounts by these commands and numbers, the transfer's own key, EXEC. */
static void say_transfer(struct torture_bank *bank, struct bank_client *c, const char *first,
                         int64_t from, const char *second, int64_t to)
{
    const struct bank_transfer *t = &bank->transfers[c->transfer];
    struct name name;
    struct name text;
    struct bytes args[3] = {word("MULTI")};
    say(bank, c, 1, args);
    args[0] = word(first);
    args[1] = account_name(bank, t->from, &name);
    args[2] = number_text(from, &text);
    say(bank, c, 3, args);
    args[0] = word(second);
    args[1] = account_name(bank, t->to, &name);
    args[2] = number_text(to, &text);
    say(bank, c, 3, args);
    args[0] = word("SET");
    args[1] = transfer_name(bank, c->transfer, &name);
    args[2] = transfer_value(t, &text);
    say(bank, c, 3, args);
    args[0] = word("EXEC");
    say(bank, c, 1, args);
    c->before = 4;
}

static void say_look(struct torture_bank *bank, struct bank_client *c)
{
    const struct bank_transfer *t = &bank->transfers[c->transfer];
    struct name from;
    struct name to;
    struct bytes args[3] = {word("WATCH"), account_name(bank, t->from, &from),
                            account_name(bank, t->to, &to)};
    say(bank, c, 3, args);
    args[0] = word("GET");
    say(bank, c, 2, args);
    args[1] = args[2];
    say(bank, c, 2, args);
    c->before = 3;
}

static void say_mget(struct torture_bank *bank, struct bank_client *c)
{
    struct name names[READ_AT_ONCE];
    struct bytes args[1 + READ_AT_ONCE] = {word("MGET")};
    bool transfers = c->job == BANK_READ_TRANSFERS;
    size_t left = bank->transfers_n - c->next;
    c->items = transfers ? (uint32_t)(left < READ_AT_ONCE ? left : READ_AT_ONCE) : BANK_ACCOUNTS;
    for (uint32_t i = 0; i < c->items; i++) {
        args[1 + i] = transfers ? transfer_name(bank, c->next + i, &names[i])
                                : account_name(bank, i, &names[i]);
    }
    say(bank, c, 1 + c->items, args);
    c->before = 0;
}

static void say_audit(struct torture_bank *bank, struct bank_client *c)
{
    struct name name;
    struct bytes args[2] = {word("MULTI")};
    if (random_chance(&bank->random, 500000)) {
        say_mget(bank, c);
        return;
    }
    say(bank, c, 1, args);
    args[0] = word("GET");
    for (uint32_t i = 0; i < BANK_ACCOUNTS; i++) {
        args[1] = account_name(bank, i, &name);
        say(bank, c, 2, args);
    }
    args[0] = word("EXEC");
    say(bank, c, 1, args);
    c->before = 1 + BANK_ACCOUNTS;
}

/* From the first account to behind the last, in one of two directions. */
static void say_range(struct torture_bank *bank, struct bank_client *c)
{
    struct name first;
    struct name end;
    struct bytes args[4] = {word("RANGE"), account_name(bank, 0, &first),
                            account_name(bank, BANK_ACCOUNTS, &end), word("REV")};
    c->backwards = random_chance(&bank->random, 500000);
    say(bank, c, c->backwards ? 4 : 3, args);
    c->before = 0;
}

static enum bank_job draw_job(struct torture_bank *bank, struct bank_client *c)
{
    uint32_t dice = (uint32_t)random_below(&bank->random, 100);
    if (bank->verifies) {
        return c->over                        ? BANK_IDLE
               : c->next == bank->transfers_n ? BANK_READ_ACCOUNTS
                                              : BANK_READ_TRANSFERS;
    }
    if (bank->drains) {
        return BANK_IDLE;
    }
    if (!bank->opened) {
        return BANK_OPEN;
    }
    if (dice < 30 || !new_transfer(bank, c)) {
        return bank->options->engine == TORTURE_LOTUS && dice < 15 ? BANK_RANGE : BANK_AUDIT;
    }
    return dice < 65 ? BANK_BLIND : BANK_LOOK;
}

static void say_job(struct torture_bank *bank, struct bank_client *c)
{
    const struct bank_transfer *t = &bank->transfers[c->transfer];
    c->heard = 0;
    c->refused = false;
    c->array = NO_HEAD;
    c->sum = 0;
    switch (c->job) {
    case BANK_IDLE:
        break;
    case BANK_OPEN:
        say_open(bank, c);
        break;
    case BANK_BLIND:
        say_transfer(bank, c, "DECRBY", t->amount, "INCRBY", t->amount);
        break;
    case BANK_LOOK:
        say_look(bank, c);
        break;
    case BANK_WRITE:
        say_transfer(bank, c, "SET", c->values[0] - t->amount, "SET", c->values[1] + t->amount);
        break;
    case BANK_AUDIT:
        say_audit(bank, c);
        break;
    case BANK_RANGE:
        say_range(bank, c);
        break;
    case BANK_READ_ACCOUNTS:
    case BANK_READ_TRANSFERS:
        say_mget(bank, c);
        break;
    }
    c->items = 0;
}

static bool is_transfer(enum bank_job job)
{
    return job == BANK_BLIND || job == BANK_WRITE;
}

static void rest(struct torture_bank *bank, struct bank_client *c, uint64_t now_us, bool content)
{
    c->job = BANK_IDLE;
    c->act_us =
        now_us + (content ? random_below(&bank->random, bank->think_us + 1)
                          : random_between(&bank->random, BACKOFF_LEAST_US, BACKOFF_MOST_US));
}

/* The connection is lost, or given up: nobody knows what became of a transfer that was sent. */
static void hang_up(struct torture_bank *bank, struct bank_client *c, uint64_t now_us)
{
    torture_stream_close(&c->stream, random_chance(&bank->random, 500000));
    if (is_transfer(c->job)) {
        bank->unknown++;
    } else if (c->job == BANK_LOOK) {
        bank->transfers[c->transfer].outcome = BANK_NOT_DONE;
    }
    if (!bank->verifies && random_chance(&bank->random, 700000)) {
        c->node = (uint32_t)random_between(&bank->random, 1, bank->options->nodes);
    }
    rest(bank, c, now_us, false);
}

static void begin(struct torture_bank *bank, struct bank_client *c, enum bank_job job,
                  uint64_t now_us)
{
    c->job = job;
    say_job(bank, c);
    c->deadline_us = now_us + (random_chance(&bank->random, 2000) && !bank->verifies
                                   ? random_between(&bank->random, 200, 10000)
                                   : random_between(&bank->random, 1000000, 8000000));
    if (!torture_stream_flush(&c->stream)) {
        hang_up(bank, c, now_us);
    }
}

/* ---- Hearing ---- */

/* The end of a transfer, or of what it needed. */
static void end_transfer(struct torture_bank *bank, struct bank_client *c,
                         enum bank_outcome outcome)
{
    bank->transfers[c->transfer].outcome = (uint8_t)outcome;
    bank->done += outcome == BANK_DONE;
    bank->unknown += outcome == BANK_UNKNOWN;
    c->ok_calm += outcome == BANK_DONE;
}

static void take_error(struct torture_bank *bank, struct bank_client *c, struct bytes text)
{
    bool unknown = text.n >= 8 && memcmp(text.at, "UNKNOWN ", 8) == 0;
    bool aborted = text.n >= 10 && memcmp(text.at, "EXECABORT ", 10) == 0;
    c->refused = true;
    if (!unknown && !torture_op_refuses(text) && !(aborted && c->heard > 0)) {
        complain(bank, "node %u answers the bank with an error that fits no command: %.*s", c->node,
                 (int)(text.n < 200 ? text.n : 200), (const char *)text.at);
    }
    bank->refused += !unknown;
}

static bool parse_number(struct bytes text, int64_t *number_out)
{
    char digits[24];
    if (text.n == 0 || text.n >= sizeof digits) {
        return false;
    }
    memcpy(digits, text.at, text.n);
    digits[text.n] = '\0';
    char *end = NULL;
    *number_out = strtoll(digits, &end, 10);
    return *end == '\0';
}

static void take_account(struct torture_bank *bank, struct bank_client *c,
                         const struct resp_client_reply *reply)
{
    int64_t money = 0;
    if (reply->kind != RESP_CLIENT_BULK || !parse_number(reply->text, &money)) {
        complain(bank, "node %u has no money in account-%u", c->node, c->items);
        return;
    }
    c->sum += money;
    c->accounts[c->items] = money;
}

/* Names and values by turns. */
static void take_pair(struct torture_bank *bank, struct bank_client *c,
                      const struct resp_client_reply *reply)
{
    uint32_t at = c->items / 2;
    uint32_t account = c->backwards ? BANK_ACCOUNTS - 1 - at : at;
    struct name name;
    int64_t money = 0;
    if (at >= BANK_ACCOUNTS || reply->kind != RESP_CLIENT_BULK) {
        complain(bank, "node %u shows more in a range of accounts than there are", c->node);
    } else if (c->items % 2 == 0 && !bytes_equal(reply->text, account_name(bank, account, &name))) {
        complain(bank, "node %u does not show account-%u in a range, but %.*s", c->node, account,
                 (int)(reply->text.n < 100 ? reply->text.n : 100), (const char *)reply->text.at);
    } else if (c->items % 2 != 0 && !parse_number(reply->text, &money)) {
        complain(bank, "node %u has no money in account-%u", c->node, account);
    }
    c->sum += money;
}

static void take_presence(struct torture_bank *bank, struct bank_client *c,
                          const struct resp_client_reply *reply)
{
    size_t i = c->next + c->items;
    struct name name;
    c->there[i] = reply->kind == RESP_CLIENT_BULK;
    if (reply->kind != RESP_CLIENT_NIL &&
        (reply->kind != RESP_CLIENT_BULK ||
         !bytes_equal(reply->text, transfer_value(&bank->transfers[i], &name)))) {
        complain(bank, "node %u shows transfer-%zu as something that nobody wrote", c->node, i);
    }
}

/* One item of an array. */
static void take_item(struct torture_bank *bank, struct bank_client *c,
                      const struct resp_client_reply *reply)
{
    bool number = c->job == BANK_BLIND && c->items < 2;
    if (c->job == BANK_READ_TRANSFERS) {
        take_presence(bank, c, reply);
    } else if (c->job == BANK_RANGE) {
        take_pair(bank, c, reply);
    } else if (!is_transfer(c->job)) {
        take_account(bank, c, reply);
    } else if (reply->kind != (number ? RESP_CLIENT_NUMBER : RESP_CLIENT_LINE)) {
        complain(bank, "node %u answers a part of transfer-%zu with %.*s", c->node, c->transfer,
                 (int)(reply->text.n < 200 ? reply->text.n : 200),
                 reply->text.n == 0 ? "" : (const char *)reply->text.at);
    }
    c->items++;
}

static void end_audit(struct torture_bank *bank, struct bank_client *c)
{
    int64_t total = (int64_t)BANK_OPENING * BANK_ACCOUNTS;
    bank->audits++;
    bank->ranges += c->job == BANK_RANGE;
    c->ok_calm++;
    if (c->sum != total) {
        complain(bank, "one transaction at node %u reads %" PRId64 " in all accounts, not %" PRId64,
                 c->node, c->sum, total);
    }
}

/* The array is whole, or nil. */
static void end_array(struct torture_bank *bank, struct bank_client *c, uint64_t now_us)
{
    uint32_t wanted = is_transfer(c->job)             ? 3
                      : c->job == BANK_READ_TRANSFERS ? c->items
                      : c->job == BANK_RANGE          ? 2 * BANK_ACCOUNTS
                                                      : BANK_ACCOUNTS;
    if (c->array < 0 && c->job == BANK_WRITE) {
        bank->conflicts++;
        bank->transfers[c->transfer].outcome = BANK_NOT_DONE;
        c->ok_calm++;
    } else if (c->array != (int64_t)wanted) {
        complain(bank, "node %u answers %" PRId64 " items, not %u", c->node, c->array, wanted);
    } else if (is_transfer(c->job)) {
        end_transfer(bank, c, BANK_DONE);
    } else if (c->job == BANK_READ_TRANSFERS) {
        c->next += c->items;
    } else {
        end_audit(bank, c);
        c->over = c->job == BANK_READ_ACCOUNTS;
    }
    rest(bank, c, now_us, true);
}

/* Everything came that comes before an array; whether one does. */
static bool end_before(struct torture_bank *bank, struct bank_client *c, uint64_t now_us)
{
    if (c->job == BANK_OPEN) {
        bank->opened |= !c->refused;
        rest(bank, c, now_us, !c->refused);
    } else if (c->job == BANK_LOOK && c->refused) {
        bank->transfers[c->transfer].outcome = BANK_NOT_DONE;
        /* It may still watch, and a transfer without a look would be answered nil. */
        torture_stream_close(&c->stream, false);
        rest(bank, c, now_us, false);
    } else if (c->job == BANK_LOOK) {
        begin(bank, c, BANK_WRITE, now_us);
    } else {
        return true;
    }
    return false;
}

/* A reply that is no array's head where one was due: an error. */
static void take_refusal(struct torture_bank *bank, struct bank_client *c,
                         const struct resp_client_reply *reply, uint64_t now_us)
{
    bool unknown = reply->text.n >= 8 && memcmp(reply->text.at, "UNKNOWN ", 8) == 0;
    if (reply->kind != RESP_CLIENT_ERROR) {
        complain(bank, "node %u answers the bank with no array", c->node);
    } else {
        take_error(bank, c, reply->text);
    }
    if (is_transfer(c->job)) {
        end_transfer(bank, c, unknown ? BANK_UNKNOWN : BANK_NOT_DONE);
    }
    rest(bank, c, now_us, false);
}

static void take_before(struct torture_bank *bank, struct bank_client *c,
                        const struct resp_client_reply *reply)
{
    if (reply->kind == RESP_CLIENT_ERROR) {
        take_error(bank, c, reply->text);
    } else if (c->job == BANK_LOOK && c->heard > 0 && !c->refused &&
               (reply->kind != RESP_CLIENT_BULK ||
                !parse_number(reply->text, &c->values[c->heard - 1]))) {
        complain(bank, "node %u has no money in an account", c->node);
    }
    c->heard++;
}

/* One reply, or the head of an array. HK_OK, HK_ERR_NOTFOUND, or what is wrong with it. */
static int take(struct torture_bank *bank, struct bank_client *c, uint64_t now_us)
{
    struct resp_client_reply reply;
    bool heads = c->heard == c->before && c->array == NO_HEAD;
    int err = heads ? torture_stream_array(&c->stream, &c->array) : HK_ERR_TYPE;
    if (err == HK_OK) {
        if (c->array <= 0) {
            end_array(bank, c, now_us);
        }
        return HK_OK;
    }
    if (err != HK_ERR_TYPE) {
        return err;
    }
    err = torture_stream_reply(&c->stream, &reply);
    if (err != HK_OK) {
        return err;
    }
    if (c->heard < c->before) {
        take_before(bank, c, &reply);
        if (c->heard == c->before) {
            (void)end_before(bank, c, now_us);
        }
    } else if (c->array == NO_HEAD) {
        take_refusal(bank, c, &reply, now_us);
    } else {
        take_item(bank, c, &reply);
        if ((int64_t)c->items == c->array) {
            end_array(bank, c, now_us);
        }
    }
    return HK_OK;
}

static void hear(struct torture_bank *bank, struct bank_client *c)
{
    bool good = torture_stream_flush(&c->stream) && torture_stream_receive(&c->stream);
    uint64_t now_us = clock_boot_us();
    int err = HK_ERR_NOTFOUND;
    while (c->job != BANK_IDLE && bank->wrong[0] == '\0' &&
           (err = take(bank, c, now_us)) == HK_OK) {
    }
    if (err != HK_OK && err != HK_ERR_NOTFOUND) {
        complain(bank, "node %u does not answer the bank in the Redis protocol", c->node);
    }
    if (!good) {
        hang_up(bank, c, now_us);
    }
}

void torture_bank_renew(struct torture_bank *bank, uint64_t now_us)
{
    for (uint32_t i = 0; i < bank->n; i++) {
        struct bank_client *c = &bank->at[i];
        if (c->job != BANK_IDLE) {
            torture_stream_close(&c->stream, false);
            rest(bank, c, now_us, false);
        }
    }
    bank->generation++;
    bank->opened = false;
    bank->transfers_n = 0;
}

/* ---- Verifying ---- */

void torture_bank_verify(struct torture_bank *bank)
{
    size_t more = bank->options->tamper == TORTURE_TAMPER_TRANSFER ? 1 : 0;
    struct bank_client *c = &bank->at[0];
    bank->verifies = true;
    if (more > 0 && new_transfer(bank, c)) {
        bank->transfers[c->transfer].outcome = BANK_DONE;
    }
    for (uint32_t i = 0; i < bank->n; i++) {
        c = &bank->at[i];
        torture_stream_close(&c->stream, false);
        c->over = i >= bank->options->nodes;
        c->node = c->over ? c->node : 1 + i;
        c->next = 0;
        c->act_us = 0;
        c->there = c->over ? NULL : calloc(bank->transfers_n + 1, 1);
        bank->no_memory |= !c->over && c->there == NULL;
    }
    bank->over = bank->n == 0 || bank->no_memory;
}

/* Whether all nodes show of a transfer what they must. False, and a complaint: they never will. */
static bool transfer_agrees(struct torture_bank *bank, size_t i)
{
    static const char *const outcomes[] = {"of unknown outcome", "acknowledged", "refused"};
    const struct bank_transfer *t = &bank->transfers[i];
    bool same = true;
    for (uint32_t k = 0; k < bank->options->nodes; k++) {
        bool there = bank->at[k].there[i] != 0;
        same = same && there == (bank->at[0].there[i] != 0);
        if ((t->outcome == BANK_DONE && !there) || (t->outcome == BANK_NOT_DONE && there)) {
            complain(bank,
                     "transfer-%zu of %d from account-%u to account-%u was %s, and node %u %s it",
                     i, t->amount, t->from, t->to, outcomes[t->outcome], bank->at[k].node,
                     there ? "has" : "does not have");
        }
    }
    return same;
}

/* Whether every account holds what the transfers that took place have left it, on all nodes. */
static bool accounts_agree(const struct torture_bank *bank, char *text, size_t size)
{
    int64_t holds[BANK_ACCOUNTS];
    for (uint32_t i = 0; i < BANK_ACCOUNTS; i++) {
        holds[i] = BANK_OPENING;
    }
    for (size_t i = 0; i < bank->transfers_n; i++) {
        const struct bank_transfer *t = &bank->transfers[i];
        if (bank->at[0].there[i] != 0) {
            holds[t->from] -= t->amount;
            holds[t->to] += t->amount;
        }
    }
    for (uint32_t k = 0; k < bank->options->nodes; k++) {
        for (uint32_t i = 0; i < BANK_ACCOUNTS; i++) {
            if (bank->at[k].accounts[i] != holds[i]) {
                snprintf(text, size,
                         "account-%u holds %" PRId64
                         " on node %u, but its transfers leave %" PRId64,
                         i, bank->at[k].accounts[i], bank->at[k].node, holds[i]);
                return false;
            }
        }
    }
    return true;
}

static void compare(struct torture_bank *bank, uint64_t now_us)
{
    bool agree = true;
    char text[200] = "the nodes show different transfers";
    for (size_t i = 0; i < bank->transfers_n; i++) {
        agree = transfer_agrees(bank, i) && agree;
    }
    agree = agree && accounts_agree(bank, text, sizeof text);
    bank->rounds++;
    if (!agree && bank->rounds >= ROUNDS_MAX) {
        complain(bank, "in the end %s", text);
    }
    bank->over = agree || bank->wrong[0] != '\0';
    for (uint32_t k = 0; !bank->over && k < bank->options->nodes; k++) {
        bank->at[k].over = false;
        bank->at[k].next = 0;
        bank->at[k].act_us = now_us + ROUND_US;
    }
}

static bool all_over(const struct torture_bank *bank)
{
    bool all = true;
    for (uint32_t i = 0; i < bank->n; i++) {
        all = all && bank->at[i].over;
    }
    return all;
}

/* ---- Acting ---- */

static void act(struct torture_bank *bank, struct bank_client *c, uint64_t now_us)
{
    if (c->stream.state == STREAM_CLOSED) {
        c->deadline_us = now_us + CONNECT_US;
        if (!torture_stream_connect(&c->stream, &bank->cluster->node[c->node].address)) {
            hang_up(bank, c, now_us);
        }
    }
    if (c->stream.state == STREAM_OPEN) {
        enum bank_job job = draw_job(bank, c);
        if (job == BANK_IDLE) {
            rest(bank, c, now_us, false);
        } else {
            begin(bank, c, job, now_us);
        }
    }
}

uint64_t torture_bank_step(struct torture_bank *bank, uint64_t now_us)
{
    uint64_t next_us = now_us + 10000;
    if (bank->verifies && !bank->over && all_over(bank)) {
        compare(bank, now_us);
    }
    for (uint32_t i = 0; i < bank->n && !bank->over; i++) {
        struct bank_client *c = &bank->at[i];
        bool waits = c->job != BANK_IDLE || c->stream.state == STREAM_CONNECTING;
        if (waits && now_us >= c->deadline_us) {
            hang_up(bank, c, now_us);
            waits = false;
        }
        if (!waits && now_us >= c->act_us && !(bank->verifies && c->over)) {
            act(bank, c, now_us);
        }
        uint64_t at_us = c->job != BANK_IDLE ? c->deadline_us : c->act_us;
        next_us = at_us > now_us && at_us < next_us ? at_us : next_us;
    }
    return next_us;
}

void torture_bank_poll_set(const struct torture_bank *bank, struct pollfd *set_out)
{
    for (uint32_t i = 0; i < bank->n; i++) {
        const struct torture_stream *stream = &bank->at[i].stream;
        set_out[i] = (struct pollfd){.fd = stream->fd, .events = torture_stream_events(stream)};
    }
}

void torture_bank_polled(struct torture_bank *bank, const struct pollfd *set)
{
    for (uint32_t i = 0; i < bank->n; i++) {
        if (set[i].revents != 0 && set[i].fd == bank->at[i].stream.fd) {
            hear(bank, &bank->at[i]);
        }
    }
}
