#include "sim/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "store/store.h"

const char *const key_class_names[KEY_CLASSES] = {
    [KEY_REGISTER] = "register", [KEY_COUNTER] = "counter", [KEY_GENERAL] = "general",
    [KEY_LENGTH] = "length",     [KEY_FILLER] = "filler",   [KEY_EXTRA] = "extra",
};

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    return x ^ (x >> 29);
}

void sim_key_init(struct sim_key *key, enum key_class class, uint32_t index)
{
    *key = (struct sim_key){.class = class};
    int n = snprintf((char *)key->bytes, sizeof key->bytes, "%s-%" PRIu32, key_class_names[class],
                     index);
    HK_ASSERT(n > 0 && (size_t)n < sizeof key->bytes);
    /* Some keys are longer, and may hold any byte. */
    uint32_t more = index % 3 == 2 ? (uint32_t)(scramble(index) % (SIM_KEY_BYTES - 20)) : 0;
    for (key->n = (uint32_t)n; more > 0 && key->n < SIM_KEY_BYTES; more--, key->n++) {
        key->bytes[key->n] = (uint8_t)(key->n * more);
    }
}

/* At least the 8 bytes of the number. */
static uint32_t value_length(enum key_class class, uint32_t profile, int64_t number)
{
    if (class == KEY_FILLER) {
        return 8 + (uint32_t)((uint64_t)number / VALUE_FILLER_UNIT % (VALUE_BYTES_MAX - 8));
    }
    uint64_t x = scramble((uint64_t)number);
    uint64_t kind = x % 16;
    if (profile == 2 && kind == 0) {
        return STORE_INLINE_MAX - 8 + (uint32_t)(x / 16 % (VALUE_BYTES_MAX - STORE_INLINE_MAX));
    }
    if (profile >= 1 && kind < 4) {
        return 8 + (uint32_t)(x / 16 % (STORE_INLINE_MAX - 8));
    }
    return 8 + (uint32_t)(x / 16 % 40);
}

uint32_t value_encode(enum key_class class, uint32_t profile, int64_t number,
                      uint8_t out[VALUE_BYTES_MAX])
{
    if (class == KEY_COUNTER) {
        int n = snprintf((char *)out, VALUE_BYTES_MAX, "%" PRId64, number);
        HK_ASSERT(n > 0);
        return (uint32_t)n;
    }
    if (class == KEY_LENGTH) {
        HK_ASSERT(number > 0 && number <= VALUE_BYTES_MAX);
        memset(out, 0, (size_t)number);
        return (uint32_t)number;
    }
    uint32_t length = value_length(class, profile, number);
    put_u64(out, (uint64_t)number);
    for (uint32_t i = 8; i < length; i++) {
        out[i] = (uint8_t)((uint64_t)number * 31 + i);
    }
    return length;
}

/* All bytes are zero, as those are that SETRANGE leaves out. */
static bool decode_length(struct bytes value, int64_t *number_out)
{
    for (uint32_t i = 0; i < value.n; i++) {
        if (value.at[i] != 0) {
            return false;
        }
    }
    *number_out = value.n;
    return value.n > 0;
}

bool value_decode(enum key_class class, uint32_t profile, struct bytes value, int64_t *number_out)
{
    int64_t number;
    if (class == KEY_LENGTH) {
        return decode_length(value, number_out);
    }
    if (class == KEY_COUNTER) {
        char text[24] = "";
        if (value.n == 0 || value.n >= sizeof text) {
            return false;
        }
        memcpy(text, value.at, value.n);
        int used = 0;
        if (sscanf(text, "%" SCNd64 "%n", &number, &used) != 1 || (uint32_t)used != value.n) {
            return false;
        }
    } else if (value.n < 8) {
        return false;
    } else {
        number = (int64_t)get_u64(value.at);
    }
    uint8_t whole[VALUE_BYTES_MAX];
    uint32_t length = value_encode(class, profile, number, whole);
    *number_out = number;
    return bytes_equal(value, bytes_of(whole, length));
}
