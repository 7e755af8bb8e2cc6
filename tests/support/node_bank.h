/* Accounts in a space whose objects have owners, and clients on every worker of every node who move
 * money between them in transactions, and add all of it up in others: it stays the same. */
#ifndef HORKOS_TESTS_SUPPORT_NODE_BANK_H
#define HORKOS_TESTS_SUPPORT_NODE_BANK_H

#include <stdatomic.h>

#include "base/random.h"
#include "support/node_cluster.h"

#define BANK_ACCOUNTS_MAX 64u
#define BANK_CLIENTS_MAX 8u /* a worker */
#define BANK_MONEY 1000

struct bank_config {
    uint32_t accounts;
    uint32_t clients; /* a worker */
    uint32_t audits;  /* of a thousand requests, those that add up */
    uint32_t local;   /* of a thousand transfers, those among accounts of the node's own */
    uint64_t seed;
    /* Names an account's key; NULL: account-0 and so on. */
    void (*name)(char *key, size_t n, uint32_t account);
};

struct bank;

/* What clients heard, all together. */
struct bank_counts {
    uint64_t done, conflicts, busy, unknown, unavailable, lost, audits;
};

struct bank *bank_create(const struct bank_config *config);
void bank_destroy(struct bank *bank);
/* For cluster_config.client. */
struct cluster_client bank_client(struct bank *bank);
/* When the cluster stands: sessions are opened, as a node's are when it was restarted. */
void bank_open(struct bank *bank, struct cluster *c, uint32_t node);
/* The node has died: its clients are gone. */
void bank_forget(struct bank *bank, uint32_t node);
/* Puts money into all accounts, at node 0; in virtual time. */
void bank_fill(struct bank *bank, struct cluster *c);
/* From now on clients send requests; or no new ones. */
void bank_run(struct bank *bank, bool on);
/* Whether no client waits for an answer. */
bool bank_idle(const struct bank *bank);
/* Threads: until so many transfers are done, then until all are answered; asserts that it comes to
 * that in so many seconds. */
void bank_await(struct bank *bank, uint64_t transfers, uint32_t seconds);
struct bank_counts bank_counts(const struct bank *bank);

/* A bank on a cluster of its own whose workers are threads, until so many transfers are done; the
 * clients are its own. What they have heard is printed and returned. */
struct bank_counts bank_threads(const struct cluster_config *cluster,
                                const struct bank_config *config, uint64_t transfers,
                                uint32_t seconds);

/* A bank on a cluster of its own, in virtual time. */
struct bank_cluster {
    struct bank *bank;
    struct cluster *cluster;
};
/* All nodes serve, the accounts are filled, clients send requests. */
struct bank_cluster bank_cluster_open(uint32_t nodes, uint32_t workers,
                                      const struct bank_config *config);
void bank_cluster_run(struct bank_cluster *b, uint32_t steps);
/* No new requests; everything that is under way is answered; then all is added up once more. */
void bank_cluster_close(struct bank_cluster *b);

#endif
