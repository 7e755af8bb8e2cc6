/* Replies of a server, counted as they come: what a load generator has to know of RESP2, at the
 * cost of a few instructions a reply. Lines, errors, numbers and bulk strings; bodies are skipped,
 * not kept. Pure. */
#ifndef HORKOS_BENCH_RESP_SCAN_H
#define HORKOS_BENCH_RESP_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define RESP_SCAN_LINE_MAX 512u

enum resp_scan_kind {
    RESP_SCAN_MORE,   /* no whole reply yet */
    RESP_SCAN_LINE,   /* "+OK" */
    RESP_SCAN_ERROR,  /* "-ERR ...": the text is scan.line */
    RESP_SCAN_NUMBER, /* ":1": scan.number */
    RESP_SCAN_BULK,   /* scan.number bytes */
    RESP_SCAN_NIL,    /* "$-1" */
    RESP_SCAN_WRONG,  /* nothing that RESP2 knows, an array, or a line without an end */
};

/* All zeros: the beginning of a stream. */
struct resp_scan {
    char line[RESP_SCAN_LINE_MAX]; /* of the present or the last reply, ended by a NUL */
    uint32_t line_n;
    int64_t number;
    uint64_t skip; /* bytes of a bulk string, with its line's end, that have not come yet */
};

/* Takes bytes from the front of *input up to the end of a reply. After WRONG nothing may follow. */
enum resp_scan_kind resp_scan_next(struct resp_scan *scan, struct bytes *input);

#endif
