#include "base/err.h"

#include <stddef.h>

static const struct {
    enum hk_err err;
    const char *name;
    const char *text;
} table[] = {
    {HK_OK, "HK_OK", "success"},
    {HK_ERR_NOMEM, "HK_ERR_NOMEM", "memory limit reached"},
    {HK_ERR_INVALID, "HK_ERR_INVALID", "invalid argument"},
    {HK_ERR_NOTFOUND, "HK_ERR_NOTFOUND", "not found"},
    {HK_ERR_FULL, "HK_ERR_FULL", "a bounded queue is full"},
    {HK_ERR_TOOBIG, "HK_ERR_TOOBIG", "over the size limit"},
    {HK_ERR_TYPE, "HK_ERR_TYPE", "value is not an integer or out of range"},
    {HK_ERR_OVERFLOW, "HK_ERR_OVERFLOW", "increment or decrement would overflow"},
    {HK_ERR_UNAVAILABLE, "HK_ERR_UNAVAILABLE", "this node holds no lease"},
    {HK_ERR_LOADING, "HK_ERR_LOADING", "this node is joining the cluster"},
    {HK_ERR_UNKNOWN, "HK_ERR_UNKNOWN", "the outcome of the update is not known"},
    {HK_ERR_BUSY, "HK_ERR_BUSY", "contention outlasted the retries"},
    {HK_ERR_CORRUPT, "HK_ERR_CORRUPT", "received bytes fail a check"},
    {HK_ERR_IO, "HK_ERR_IO", "the operating system refused an operation"},
    {HK_ERR_CONDITION, "HK_ERR_CONDITION", "the condition did not hold"},
    {HK_ERR_TIMEOUT, "HK_ERR_TIMEOUT", "the time is over"},
    {HK_ERR_ABORTED, "HK_ERR_ABORTED", "something that the transaction has read has changed"},
    {HK_ERR_LOSTSLOT, "HK_ERR_LOSTSLOT", "the node that had the key is gone, and the key with it"},
    {HK_ERR_LOST, "HK_ERR_LOST", "all nodes that had the object are gone, and it with them"},
    {HK_ERR_ROLE, "HK_ERR_ROLE", "this node runs no transactions, or no node keeps rows"},
};

const char *hk_err_name(int err)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if ((int)table[i].err == err) {
            return table[i].name;
        }
    }
    return "HK_ERR_?";
}

const char *hk_err_text(int err)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if ((int)table[i].err == err) {
            return table[i].text;
        }
    }
    return "unknown error";
}
