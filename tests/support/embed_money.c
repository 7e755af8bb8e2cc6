#include "support/embed_money.h"

#include <stdio.h>
#include <stdlib.h>

int embed_money_read(struct hk_txn *t, uint32_t account, int *money_out)
{
    char key[24];
    char value[16];
    size_t n = 0;
    (void)snprintf(key, sizeof key, "account %u", account);
    int err = hk_txn_get(t, hk_text(key), value, sizeof value - 1, &n);
    value[n] = '\0';
    *money_out = err == HK_OK ? atoi(value) : 0;
    return err;
}

int embed_money_write(struct hk_txn *t, uint32_t account, int money)
{
    char key[24];
    char value[16];
    (void)snprintf(key, sizeof key, "account %u", account);
    (void)snprintf(value, sizeof value, "%d", money);
    return hk_txn_put(t, hk_text(key), hk_text(value), NULL);
}

int embed_money_pay(struct hk_txn *t, void *context)
{
    const struct embed_payment *p = context;
    int from = 0;
    int to = 0;
    int err = embed_money_read(t, p->from, &from);
    err = err == HK_OK ? embed_money_read(t, p->to, &to) : err;
    err = err == HK_OK ? embed_money_write(t, p->from, from - p->amount) : err;
    return err == HK_OK ? embed_money_write(t, p->to, to + p->amount) : err;
}

int embed_money_add_up(struct hk_txn *t, void *context)
{
    struct embed_total *total = context;
    int err = HK_OK;
    total->money = 0;
    for (uint32_t i = 0; i < total->accounts && err == HK_OK; i++) {
        int money = 0;
        err = embed_money_read(t, i, &money);
        total->money += money;
    }
    return err;
}
