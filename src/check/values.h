/* The values that one key can take, numbered from 0. Numbers instead of values make comparing cheap
 * and whatever is known of a value an entry of an array. */
#ifndef HORKOS_CHECK_VALUES_H
#define HORKOS_CHECK_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#define VALUE_NONE UINT32_MAX
#define VALUE_ABSENT 0u /* every key starts here */

struct value {
    int64_t number;     /* as the history has it; HISTORY_ABSENT for VALUE_ABSENT */
    uint32_t family;    /* step.h: values that cannot be told apart when counting */
    uint64_t wanted_at; /* search.c: the last look at which an operation waited for this value */
};

struct values {
    struct value *at;
    uint32_t n;
    uint32_t size;
    uint32_t *slots; /* open addressing: index into at plus one, 0 if empty */
    uint32_t slots_n;
};

/* Holds VALUE_ABSENT afterwards. False without memory; then nothing needs to be deinitialized. */
bool values_init(struct values *v);
void values_deinit(struct values *v);
/* The number of the value, a new one if it was not known; VALUE_NONE without memory. Pointers
 * into at are no longer valid afterwards. */
uint32_t values_number(struct values *v, int64_t number);

#endif
