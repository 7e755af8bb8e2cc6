/* The errors of horkos: zero is success, every error is negative. One table (src/base/err.c) gives
 * name and text. Included by horkos.h. */
#ifndef HORKOS_ERR_H
#define HORKOS_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

enum hk_err {
    HK_OK = 0,
    HK_ERR_NOMEM = -1,       /* a memory limit was reached; nothing changed */
    HK_ERR_INVALID = -2,     /* an argument is outside what the interface allows */
    HK_ERR_NOTFOUND = -3,    /* the key (or entry) does not exist */
    HK_ERR_FULL = -4,        /* a bounded queue or table is full; nothing changed */
    HK_ERR_TOOBIG = -5,      /* a key, value or frame is over its limit; nothing changed */
    HK_ERR_TYPE = -6,        /* the value is not an integer, or out of range; nothing changed */
    HK_ERR_OVERFLOW = -7,    /* the result would overflow; nothing changed */
    HK_ERR_UNAVAILABLE = -8, /* no lease, or no view: nothing changed */
    HK_ERR_LOADING = -9,     /* the node is joining and serves nothing yet; nothing changed */
    HK_ERR_UNKNOWN = -10,    /* the outcome of an update is not known: it may or may not apply */
    HK_ERR_BUSY = -11,       /* contention outlasted the retries inside the node; nothing changed */
    HK_ERR_CORRUPT = -12,    /* bytes from outside fail a check */
    HK_ERR_IO = -13,         /* the operating system refused an operation */
    HK_ERR_CONDITION = -14,  /* the condition of an update did not hold; nothing changed */
    HK_ERR_TIMEOUT = -15,    /* the time that the caller gave is over */
    HK_ERR_LOSTSLOT =
        -16,           /* the node that had the key is gone, and the key with it; nothing changed */
    HK_ERR_LOST = -17, /* all nodes that had the object are gone, and it with them; nothing changed
                        */
    HK_ERR_ABORTED = -18, /* something that a transaction has read is not so any more; nothing
                             changed, and it may be tried again */
    HK_ERR_ROLE = -19,    /* this node keeps rows and runs no transactions, or no node keeps rows;
                             nothing changed */
};

/* "HK_OK", "HK_ERR_NOMEM", ...; "HK_ERR_?" for a number that is none of them. */
const char *hk_err_name(int err);
/* A sentence for people, without a full stop. */
const char *hk_err_text(int err);

#ifdef __cplusplus
}
#endif

#endif
