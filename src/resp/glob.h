/* Patterns of KEYS, SCAN and CONFIG GET: `*`, `?`, `[a-z]`, `[^a]` and `\` as Redis's stringmatch
 * takes them. */
#ifndef HORKOS_RESP_GLOB_H
#define HORKOS_RESP_GLOB_H

#include <stdbool.h>

#include "base/bytes.h"

/* Longest pattern that KEYS and SCAN take. A match takes at most pattern.n * text.n steps, and a
 * key may have 64 KiB: no pattern may hold a worker up for long with one key. */
#define RESP_GLOB_MAX 1024u

/* Whether the whole text matches. any_case: ASCII letters of both cases are the same. */
bool resp_glob_match(struct bytes pattern, struct bytes text, bool any_case);

#endif
