/* The slowest commands of late, for SLOWLOG: a bounded list that all workers share. Entries are
 * copies, with arguments cut as Redis cuts them, so one holds at most about 5 KiB. At the bound the
 * oldest goes; without memory the new one does.
 *
 * Threads. Any; one lock, taken only for slow commands and SLOWLOG itself. */
#ifndef HORKOS_SERVER_SLOWLOG_H
#define HORKOS_SERVER_SLOWLOG_H

#include <stdint.h>

#include "resp/host.h"
#include "resp/out.h"

struct slowlog;

/* max: entries; 0: keeps none. HK_ERR_NOMEM. */
int slowlog_create(uint32_t max, struct slowlog **slowlog_out) __attribute__((warn_unused_result));
void slowlog_destroy(struct slowlog *slowlog);
/* Forgets the oldest at once if there are more than max. */
void slowlog_set_max(struct slowlog *slowlog, uint32_t max);

/* Keeps a copy. The id in slow does not count: ids are given here, from 0 on, and never again. */
void slowlog_add(struct slowlog *slowlog, const struct resp_slow *slow);
/* SLOWLOG GET: an array of the n newest, newest first; negative: all. */
void slowlog_get(struct slowlog *slowlog, int64_t n, struct resp_out *out);
uint64_t slowlog_length(struct slowlog *slowlog);
/* Forgets all; ids go on. */
void slowlog_reset(struct slowlog *slowlog);

#endif
