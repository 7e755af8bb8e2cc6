/* The bank of a torture: clients that transfer money between accounts in transactions, over RESP,
 * in a space that has them. Some watch two accounts, read them and write what they shall hold; some
 * subtract and add without a look; some read all accounts in one transaction, and the sum must be
 * what it always is. With each transfer a key of its own is set: so in the end it is known of every
 * transfer whether it took place, and each account must hold what those that did have left it.
 * Where rows can be lost accounts are of a generation, which ends when lost ones are given up. */
#ifndef HORKOS_TOOLS_TORTURE_BANK_H
#define HORKOS_TOOLS_TORTURE_BANK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "tools/torture_cluster.h"
#include "tools/torture_stream.h"

#define BANK_CLIENTS_MAX 32u
#define BANK_ACCOUNTS 24u
#define BANK_OPENING 1000 /* what an account holds at first */

enum bank_outcome {
    BANK_UNKNOWN, /* under way, or nobody knows */
    BANK_DONE,
    BANK_NOT_DONE, /* refused, or a watched account had changed */
};

struct bank_transfer {
    int32_t amount;
    uint8_t from, to;
    uint8_t outcome; /* enum bank_outcome */
};

enum bank_job {
    BANK_IDLE,
    BANK_OPEN,           /* makes the accounts, unless they are there */
    BANK_BLIND,          /* a transfer that does not look */
    BANK_LOOK,           /* WATCH and two reads */
    BANK_WRITE,          /* ... and the transfer that follows */
    BANK_AUDIT,          /* all accounts, between MULTI and EXEC or by MGET */
    BANK_RANGE,          /* all accounts, as a range: names and values */
    BANK_READ_ACCOUNTS,  /* in the end, at one node */
    BANK_READ_TRANSFERS, /* likewise, some of them */
};

struct bank_client {
    uint32_t node; /* that it speaks with */
    struct torture_stream stream;
    enum bank_job job;
    uint32_t heard; /* replies, of those that come before an array */
    uint32_t before;
    bool refused;      /* one of them was an error */
    int64_t array;     /* items that the array has; -2: its head has not come */
    uint32_t items;    /* that have come */
    int64_t sum;       /* of an audit */
    bool backwards;    /* of a range */
    int64_t values[2]; /* of a look */
    size_t transfer;   /* of a transfer */
    uint64_t act_us, deadline_us;
    uint64_t ok_calm; /* answers since the faults ended that tell for certain */
    /* In the end, of its node. */
    size_t next; /* transfer to be read */
    bool over;
    int64_t accounts[BANK_ACCOUNTS];
    uint8_t *there; /* by transfer */
};

struct torture_bank {
    const struct torture_options *options;
    struct torture_cluster *cluster;
    struct random random;
    uint32_t think_us;
    uint32_t n;          /* clients; 0: there is no bank */
    uint32_t generation; /* of the accounts: what had been lost and was given up is done with */
    bool opened;
    bool calm, drains;
    bool verifies;
    uint32_t rounds; /* of verifying */
    uint64_t round_us;
    bool over; /* it is verified, or cannot be */
    bool no_memory;
    char wrong[500];                                            /* "": all is well */
    uint64_t done, conflicts, refused, unknown, audits, ranges; /* of all generations */
    struct bank_transfer *transfers;
    size_t transfers_n, transfers_max;
    struct bank_client at[BANK_CLIENTS_MAX];
};

/* No clients unless the space has transactions. */
void torture_bank_init(struct torture_bank *bank, const struct torture_options *options,
                       uint32_t think_us, struct torture_cluster *cluster);
void torture_bank_deinit(struct torture_bank *bank);

/* As those of the crowd. */
uint64_t torture_bank_step(struct torture_bank *bank, uint64_t now_us);
void torture_bank_poll_set(const struct torture_bank *bank, struct pollfd *set_out);
void torture_bank_polled(struct torture_bank *bank, const struct pollfd *set);
void torture_bank_calm(struct torture_bank *bank);
uint64_t torture_bank_least_calm(const struct torture_bank *bank);
bool torture_bank_idle(const struct torture_bank *bank);

/* The operator gives up what was lost, some of the accounts perhaps: others take their place, and
 * nobody asks for these and their transfers any more. Before anybody hears of it. */
void torture_bank_renew(struct torture_bank *bank, uint64_t now_us);

/* Once it drains and is idle: every node is asked for all accounts and transfers, until `over`. */
void torture_bank_verify(struct torture_bank *bank);

#endif
