#include "server/config_table.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"

bool config_complain(const struct config_complaint *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(to->at, to->size, format, args);
    va_end(args);
    return false;
}

bool config_number_parse(const char *text, uint64_t *number_out)
{
    uint64_t number = 0;
    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0')) {
        return false;
    }
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number)) {
            return false;
        }
    }
    *number_out = number;
    return true;
}

/* Redis's units: k, m and g are powers of 1000, kb, mb and gb of 1024; ours beside them. */
static const struct {
    const char *name;
    uint64_t bytes;
} size_units[] = {
    {"", 1},
    {"b", 1},
    {"k", 1000},
    {"kb", 1024},
    {"kib", 1024},
    {"m", 1000000},
    {"mb", 1024 * 1024},
    {"mib", 1024 * 1024},
    {"g", 1000000000},
    {"gb", UINT64_C(1) << 30},
    {"gib", UINT64_C(1) << 30},
    {"tb", UINT64_C(1) << 40},
    {"tib", UINT64_C(1) << 40},
};

static bool size_parse(const char *text, uint64_t *bytes_out)
{
    char digits[32];
    uint64_t number;
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n >= sizeof digits) {
        return false;
    }
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (!config_number_parse(digits, &number)) {
        return false;
    }
    const char *unit = text + n + strspn(text + n, " ");
    for (size_t i = 0; i < sizeof size_units / sizeof size_units[0]; i++) {
        if (strcasecmp(unit, size_units[i].name) == 0) {
            return !__builtin_mul_overflow(number, size_units[i].bytes, bytes_out);
        }
    }
    return false;
}

static void size_text(uint64_t bytes, char *out, size_t n)
{
    static const char *const units[] = {"", "kb", "mb", "gb", "tb"};
    uint32_t unit = 0;
    while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(out, n, "%" PRIu64 "%s", bytes, units[unit]);
}

static bool signed_parse(const char *text, int64_t *number_out)
{
    uint64_t magnitude;
    bool negative = text[0] == '-';
    if (!config_number_parse(text + negative, &magnitude) || magnitude > INT64_MAX ||
        (negative && magnitude == 0)) {
        return false;
    }
    *number_out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static void describe_names(const struct config_option *option, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < option->names_n; i++) {
        const char *glue = i == 0 ? "" : i + 1 == option->names_n ? " or " : ", ";
        n += (size_t)snprintf(out + n, size - n, "%s%s", glue, option->names[i]);
        HK_ASSERT(n < size);
    }
}

void config_value_describe(const struct config_option *option, char text_out[CONFIG_TEXT_MAX])
{
    char low[32], high[32];
    const char *unit = option->unit == NULL ? "" : option->unit;
    const char *blank = option->unit == NULL ? "" : " ";
    text_out[0] = '\0';
    switch (option->type) {
    case CONFIG_NUMBER:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "%" PRIu64 " to %" PRIu64 "%s%s", option->min,
                       option->max, blank, unit);
        break;
    case CONFIG_SIGNED:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "%" PRId64 " to %" PRId64 "%s%s",
                       (int64_t)option->min, (int64_t)option->max, blank, unit);
        break;
    case CONFIG_SIZE:
        size_text(option->min, low, sizeof low);
        size_text(option->max, high, sizeof high);
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "%s to %s", low, high);
        break;
    case CONFIG_SWITCH:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "yes or no");
        break;
    case CONFIG_WORD:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "a word of letters, digits, - and _");
        if (option->names_n == 0) {
            break;
        }
        /* fall through */
    case CONFIG_CHOICE:
        describe_names(option, text_out, CONFIG_TEXT_MAX);
        break;
    case CONFIG_PATH:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "a path, from the folder of this file on");
        break;
    case CONFIG_ADDRESS:
    case CONFIG_PEER:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "host:port or [v6]:port");
        break;
    case CONFIG_LISTEN:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "host:port, [v6]:port or unix:/path");
        break;
    case CONFIG_PASSWORD:
    case CONFIG_REQUIREPASS:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "a password");
        break;
    case CONFIG_TYPES:
        HK_ASSERT(false);
    }
}

static bool refuse(const struct config_option *option, const char *text,
                   const struct config_complaint *complaint)
{
    char takes[CONFIG_TEXT_MAX];
    config_value_describe(option, takes);
    return config_complain(complaint, "%s = %.200s: it takes %s", option->name, text, takes);
}

static bool word_valid(const struct config_option *option, const char *text)
{
    if (text[0] == '\0' || strlen(text) >= option->bytes) {
        return false;
    }
    for (uint32_t i = 0; i < option->names_n; i++) {
        if (strcmp(text, option->names[i]) == 0) {
            return true;
        }
    }
    for (const char *p = text; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_') {
            return false;
        }
    }
    return option->names_n == 0;
}

static bool number_set(const struct config_option *option, void *at, const char *text)
{
    uint64_t number;
    bool parsed = option->type == CONFIG_SIZE ? size_parse(text, &number)
                                              : config_number_parse(text, &number);
    if (!parsed || number < option->min || number > option->max) {
        return false;
    }
    if (option->bytes == 1) {
        *(uint8_t *)at = (uint8_t)number;
    } else if (option->bytes == 4) {
        memcpy(at, &(uint32_t){(uint32_t)number}, 4);
    } else {
        HK_ASSERT(option->bytes == 8);
        memcpy(at, &number, 8);
    }
    return true;
}

static bool choice_set(const struct config_option *option, void *at, const char *text)
{
    for (uint32_t i = 0; i < option->names_n; i++) {
        if (strcasecmp(text, option->names[i]) == 0) {
            memcpy(at, &i, sizeof i);
            return true;
        }
    }
    return false;
}

static bool signed_set(const struct config_option *option, void *at, const char *text)
{
    int64_t number;
    if (!signed_parse(text, &number) || number < (int64_t)option->min ||
        number > (int64_t)option->max) {
        return false;
    }
    memcpy(at, &number, sizeof number);
    return true;
}

static bool switch_set(void *at, const char *text)
{
    bool yes = strcasecmp(text, "yes") == 0;
    if (!yes && strcasecmp(text, "no") != 0) {
        return false;
    }
    memcpy(at, &yes, sizeof yes);
    return true;
}

static bool text_set(const struct config_option *option, void *at, const char *text)
{
    if (text[0] == '\0' || strlen(text) >= option->bytes) {
        return false;
    }
    (void)snprintf(at, option->bytes, "%s", text);
    return true;
}

bool config_value_set(const struct config_option *option, void *base, const char *text,
                      const struct config_complaint *complaint)
{
    void *at = (char *)base + option->offset;
    const char *why;
    bool good = false;
    switch (option->type) {
    case CONFIG_NUMBER:
    case CONFIG_SIZE:
        good = number_set(option, at, text);
        break;
    case CONFIG_SIGNED:
        good = signed_set(option, at, text);
        break;
    case CONFIG_SWITCH:
        good = switch_set(at, text);
        break;
    case CONFIG_CHOICE:
        good = choice_set(option, at, text);
        break;
    case CONFIG_WORD:
        good = word_valid(option, text) && text_set(option, at, text);
        break;
    case CONFIG_PATH:
        good = text_set(option, at, text);
        break;
    case CONFIG_ADDRESS:
        why = gate_address_invalid(text);
        if (why != NULL) {
            return config_complain(complaint, "%s = %.200s: %s", option->name, text, why);
        }
        good = text_set(option, at, text);
        break;
    case CONFIG_LISTEN:
    case CONFIG_PEER:
    case CONFIG_PASSWORD:
    case CONFIG_REQUIREPASS:
    case CONFIG_TYPES:
        HK_ASSERT(false);
    }
    return good || refuse(option, text, complaint);
}

static uint64_t number_get(const struct config_option *option, const void *at)
{
    uint32_t small;
    uint64_t number;
    if (option->bytes == 1) {
        return *(const uint8_t *)at;
    }
    if (option->bytes == 4) {
        memcpy(&small, at, sizeof small);
        return small;
    }
    memcpy(&number, at, sizeof number);
    return number;
}

void config_value_get(const struct config_option *option, const void *base,
                      char text_out[CONFIG_TEXT_MAX])
{
    const void *at = (const char *)base + option->offset;
    int64_t number;
    switch (option->type) {
    case CONFIG_NUMBER:
    case CONFIG_SIZE:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "%" PRIu64, number_get(option, at));
        break;
    case CONFIG_SIGNED:
        memcpy(&number, at, sizeof number);
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "%" PRId64, number);
        break;
    case CONFIG_SWITCH:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "%s", *(const bool *)at ? "yes" : "no");
        break;
    case CONFIG_CHOICE:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "%s", option->names[number_get(option, at)]);
        break;
    case CONFIG_WORD:
    case CONFIG_PATH:
    case CONFIG_ADDRESS:
        (void)snprintf(text_out, CONFIG_TEXT_MAX, "%s", (const char *)at);
        break;
    case CONFIG_LISTEN:
    case CONFIG_PEER:
    case CONFIG_PASSWORD:
    case CONFIG_REQUIREPASS:
    case CONFIG_TYPES:
        HK_ASSERT(false);
    }
}
