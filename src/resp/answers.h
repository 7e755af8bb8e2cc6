/* The ways in which the answer to an operation becomes a reply (resp_answer_fn). */
#ifndef HORKOS_RESP_ANSWERS_H
#define HORKOS_RESP_ANSWERS_H

#include "resp/internal.h"

resp_answer_fn answer_value; /* a bulk, or null */
resp_answer_fn answer_number;
resp_answer_fn answer_set;   /* +OK, or null; with GET the old value, or null */
resp_answer_fn answer_setnx; /* 1 or 0 */
resp_answer_fn answer_ok;    /* +OK after the last operation */
resp_answer_fn answer_sum;   /* of all operations */
resp_answer_fn answer_each;  /* an array of bulks or nulls */

#endif
