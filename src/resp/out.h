/* Reply bytes of one connection: a growable buffer with a bound, and the writer of RESP2 and RESP3
 * values on top of it. Pure but for realloc. Once the bound is passed or memory is short the buffer
 * is `failed` and takes nothing more; the connection then closes. */
#ifndef HORKOS_RESP_OUT_H
#define HORKOS_RESP_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct resp_out {
    uint8_t *at;
    uint32_t n, capacity;
    uint32_t max; /* bytes */
    bool failed;
    bool resp3;
};

void resp_out_init(struct resp_out *out, uint32_t max);
void resp_out_deinit(struct resp_out *out);
/* Forgets what was written; keeps a small buffer. */
void resp_out_reset(struct resp_out *out);
/* Takes back everything behind `mark` (an earlier out->n). */
void resp_out_rewind(struct resp_out *out, uint32_t mark);

void resp_out_raw(struct resp_out *out, struct bytes bytes);
void resp_out_simple(struct resp_out *out, const char *text); /* +text */
void resp_out_error(struct resp_out *out,
                    const char *text); /* -text; line breaks become blanks, at the end nothing */
void resp_out_errorf(struct resp_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void resp_out_number(struct resp_out *out, int64_t number);      /* :n */
void resp_out_bulk(struct resp_out *out, struct bytes bytes);    /* $n */
void resp_out_text(struct resp_out *out, const char *text);      /* $n, of a C string */
void resp_out_verbatim(struct resp_out *out, struct bytes text); /* RESP3 =n txt:; RESP2 a bulk */
void resp_out_null(struct resp_out *out);                        /* RESP3 _; RESP2 $-1 */
void resp_out_null_array(struct resp_out *out);                  /* RESP3 _; RESP2 *-1 */
void resp_out_bool(struct resp_out *out, bool value);            /* RESP3 #t; RESP2 :1 */
void resp_out_double(struct resp_out *out, double value);        /* RESP3 ,x; RESP2 a bulk */
void resp_out_array(struct resp_out *out, uint32_t n);           /* *n */
void resp_out_map(struct resp_out *out, uint32_t pairs);         /* RESP3 %n; RESP2 *2n */
void resp_out_set(struct resp_out *out, uint32_t n);             /* RESP3 ~n; RESP2 *n */

#endif
