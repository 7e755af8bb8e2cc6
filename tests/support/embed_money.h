/* Accounts "account 0", "account 1", ... as decimal numbers, for transactions. */
#ifndef HORKOS_TESTS_EMBED_MONEY_H
#define HORKOS_TESTS_EMBED_MONEY_H

#include "horkos.h"

/* An account that is not there has no money. What hk_txn_get and hk_txn_put answer. */
int embed_money_read(struct hk_txn *t, uint32_t account, int *money_out);
int embed_money_write(struct hk_txn *t, uint32_t account, int money);

struct embed_payment {
    uint32_t from, to;
    int amount;
};
struct embed_total {
    uint32_t accounts;
    int money; /* out */
};
/* For hk_txn_run: context is a struct embed_payment, or a struct embed_total. */
int embed_money_pay(struct hk_txn *t, void *context);
int embed_money_add_up(struct hk_txn *t, void *context);

#endif
