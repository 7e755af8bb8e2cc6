/* Keys, and the values that stand for the numbers of a history. The bytes of a value follow from
 * its number, so that a mixture of two values is noticed. */
#ifndef HORKOS_SIM_VALUE_H
#define HORKOS_SIM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum key_class {
    KEY_REGISTER, /* only read and written */
    KEY_COUNTER,  /* values are decimal numbers */
    KEY_GENERAL,
    KEY_LENGTH, /* of the value only its length counts, which is the number */
    KEY_FILLER, /* written once, to have something that takes room */
    KEY_EXTRA,  /* for operations whose answers no history knows */
    KEY_CLASSES
};
extern const char *const key_class_names[KEY_CLASSES];

/* For tests: a value that was read, and then another one, and who reads after both is made to see
 * the first again. */
struct tampering {
    uint32_t seen; /* values seen so far */
    int64_t first;
    uint64_t after_us; /* the end of the latest read that counts, as in the history */
};

#define SIM_KEY_BYTES 80u
struct sim_key {
    enum key_class class;
    bool private;      /* only one client uses it */
    bool fleeting;     /* its values often have deadlines that come soon */
    uint32_t unknowns; /* updates of it whose outcome nobody learned */
    bool value_known;  /* value was read or written by somebody */
    int64_t value;
    struct tampering tampering;
    uint32_t n;
    uint8_t bytes[SIM_KEY_BYTES];
};

/* Fills in the bytes: different for each index, of different lengths. */
void sim_key_init(struct sim_key *key, enum key_class class, uint32_t index);

#define VALUE_BYTES_MAX 6000u
/* What a value of KEY_FILLER adds to its number for each byte of its length. */
#define VALUE_FILLER_UNIT INT64_C(1000000000)
/* The bytes of a number under a class and a profile (setup.value_profile); returns how many.
 * KEY_LENGTH: the number is from 1 to VALUE_BYTES_MAX. */
uint32_t value_encode(enum key_class class, uint32_t profile, int64_t number,
                      uint8_t out[VALUE_BYTES_MAX]);
/* False if no number has these bytes. */
bool value_decode(enum key_class class, uint32_t profile, struct bytes value, int64_t *number_out);

#endif
