#include "resp/command.h"

#include <string.h>

#include "resp/command_refused.h"
#include "resp/command_rows.h"

/* The place of each command in the order of names. */
enum place {
#define PLACE(name_) PLACE_##name_,
    RESP_COMMANDS(PLACE)
#undef PLACE
        PLACES
};

static const struct resp_command *const commands[PLACES] = {
#define ROW(name_) [PLACE_##name_] = &resp_command_##name_,
    RESP_COMMANDS(ROW)
#undef ROW
};

/* Each command's name in a word of 16 bytes, filled up with zeros: a look-up compares few words
 * that lie together and touches no row but the one that it finds. */
#define WORD_BYTES 16u /* two halves of eight */
static const uint8_t words[PLACES][WORD_BYTES] = {
#define WORD(name_) [PLACE_##name_] = #name_,
    RESP_COMMANDS(WORD)
#undef WORD
};
#define FITS(name_) _Static_assert(sizeof #name_ <= WORD_BYTES, "a longer word is needed");
RESP_COMMANDS(FITS)
#undef FITS

/* The first command that begins with this letter or a later one; one entry more closes the last. */
static const uint8_t letters[27] = {
    PLACE_acl,    PLACE_client /* b */,
    PLACE_client, PLACE_dbsize,
    PLACE_echo,   PLACE_flushall,
    PLACE_get,    PLACE_hello,
    PLACE_incr,   PLACE_keys /* j */,
    PLACE_keys,   PLACE_latency,
    PLACE_memory, PLACE_object /* n */,
    PLACE_object, PLACE_persist,
    PLACE_quit,   PLACE_randomkey,
    PLACE_scan,   PLACE_time,
    PLACE_unlink, PLACE_wait /* v */,
    PLACE_wait,   PLACES /* x */,
    PLACES,       PLACES,
    PLACES,
};
_Static_assert(PLACES < 256, "letters hold bytes");

/* Only ASCII: the locale has no say in the protocol. */
static char lower(uint8_t c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* strcmp of a text that is lowered on the way. */
static int compare(struct bytes text, const char *name)
{
    for (uint32_t i = 0; i < text.n; i++) {
        int difference = (uint8_t)lower(text.at[i]) - (uint8_t)name[i];
        if (difference != 0 || name[i] == '\0') {
            return difference != 0 ? difference : 1;
        }
    }
    return name[text.n] == '\0' ? 0 : -1;
}

static const struct resp_command *find_refused(struct bytes name)
{
    uint32_t from = 0;
    uint32_t to = resp_refused_n;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        int order = compare(name, resp_refused[middle].name);
        if (order == 0) {
            return &resp_refused[middle];
        }
        if (order < 0) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    return NULL;
}

#define EACH_BYTE(c_) (UINT64_C(0x0101010101010101) * (c_))

/* Lowers the letters among eight bytes at once: the sums carry into the top bit of each byte that
 * is at least 'A', and of each that is beyond 'Z'. */
static uint64_t lower_eight(uint64_t bytes)
{
    uint64_t low = bytes & EACH_BYTE(0x7f);
    uint64_t from_a = low + EACH_BYTE(0x80 - 'A');
    uint64_t beyond_z = low + EACH_BYTE(0x7f - 'Z');
    uint64_t upper = ~bytes & (from_a ^ beyond_z) & EACH_BYTE(0x80);
    return bytes | upper >> 2;
}

/* Up to eight bytes as an integer, zeros behind them, without a loop: reads that overlap. */
static uint64_t load_eight(const uint8_t *at, uint32_t n)
{
    if (n >= 8) {
        return get_u64(at);
    }
    if (n >= 4) {
        return get_u32(at) | (uint64_t)get_u32(at + n - 4) << 8 * (n - 4);
    }
    if (n == 0) {
        return 0;
    }
    return at[0] | (uint64_t)at[n / 2] << 8 * (n / 2) | (uint64_t)at[n - 1] << 8 * (n - 1);
}

/* This runs for every command of every client. */
static const struct resp_command *find_served(struct bytes name)
{
    if (name.n == 0 || name.n >= WORD_BYTES || name.at[name.n - 1] == '\0') {
        return NULL; /* a zero at its end would make it equal to a shorter one */
    }
    uint64_t first = lower_eight(load_eight(name.at, name.n));
    uint64_t second = name.n <= 8 ? 0 : lower_eight(load_eight(name.at + 8, name.n - 8));
    uint8_t letter = (uint8_t)(first & 0xff);
    if (letter < 'a' || letter > 'z') {
        return NULL;
    }
    for (uint32_t i = letters[letter - 'a']; i < letters[letter - 'a' + 1]; i++) {
        if (first == get_u64(words[i]) && second == get_u64(words[i] + 8)) {
            return commands[i];
        }
    }
    return NULL;
}

const struct resp_command *resp_command_find(struct bytes name)
{
    const struct resp_command *command = find_served(name);
    return command != NULL ? command : find_refused(name);
}

const struct resp_command *resp_subcommand_find(const struct resp_command *parent,
                                                struct bytes name)
{
    for (uint32_t i = 0; i < parent->subcommands_n; i++) {
        if (compare(name, parent->subcommands[i].name) == 0) {
            return &parent->subcommands[i];
        }
    }
    return NULL;
}

const struct resp_command *resp_command_find_full(struct bytes name)
{
    const uint8_t *bar = name.n == 0 ? NULL : memchr(name.at, '|', name.n);
    if (bar == NULL) {
        return find_served(name);
    }
    uint32_t n = (uint32_t)(bar - name.at);
    const struct resp_command *parent = find_served(bytes_of(name.at, n));
    const struct resp_command *command =
        parent == NULL ? NULL : resp_subcommand_find(parent, bytes_of(bar + 1, name.n - n - 1));
    return command == NULL || (command->flags & RESP_REFUSED) != 0 ? NULL : command;
}

const struct resp_command *resp_command_at(uint32_t index)
{
    return index < PLACES ? commands[index] : NULL;
}

uint32_t resp_command_count(void)
{
    return PLACES;
}

const struct resp_command *resp_refused_at(uint32_t index)
{
    return index < resp_refused_n ? &resp_refused[index] : NULL;
}

bool resp_command_arity_fits(const struct resp_command *command, uint32_t n)
{
    return command->arity < 0 ? n >= (uint32_t)-command->arity : n == (uint32_t)command->arity;
}

uint32_t resp_command_flag_words(const struct resp_command *command,
                                 const char *words_out[RESP_WORDS_MAX])
{
    static const struct {
        uint32_t flag;
        const char *words[2];
    } table[] = {
        {RESP_WRITE, {"write", NULL}},        {RESP_READONLY, {"readonly", NULL}},
        {RESP_DENYOOM, {"denyoom", NULL}},    {RESP_ADMIN, {"admin", NULL}},
        {RESP_LOADING, {"loading", "stale"}}, {RESP_FAST, {"fast", NULL}},
        {RESP_NOAUTH, {"no_auth", NULL}},
    };
    uint32_t n = 0;
    for (uint32_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        for (uint32_t j = 0; j < 2 && (command->flags & table[i].flag) != 0; j++) {
            if (table[i].words[j] != NULL) {
                words_out[n++] = table[i].words[j];
            }
        }
    }
    return n;
}

/* Categories as Redis names and orders them. */
uint32_t resp_command_category_words(const struct resp_command *command,
                                     const char *words_out[RESP_WORDS_MAX])
{
    uint32_t flags = command->flags;
    bool keyspace = strcmp(command->group, "generic") == 0 ||
                    (strcmp(command->group, "server") == 0 &&
                     (flags & (RESP_WRITE | RESP_READONLY)) != 0 && command->parent == NULL);
    bool connection = strcmp(command->group, "connection") == 0 ||
                      strcmp(command->group, "cluster") == 0 || command == &resp_command_command ||
                      command->parent == &resp_command_command;
    uint32_t n = 0;
    if (keyspace && command->subcommands == NULL && command != &resp_command_wait) {
        words_out[n++] = "@keyspace";
    }
    if ((flags & RESP_READONLY) != 0) {
        words_out[n++] = "@read";
    }
    if ((flags & RESP_WRITE) != 0) {
        words_out[n++] = "@write";
    }
    if (strcmp(command->group, "string") == 0) {
        words_out[n++] = "@string";
    }
    if ((flags & RESP_ADMIN) != 0) {
        words_out[n++] = "@admin";
    }
    words_out[n++] = (flags & RESP_FAST) != 0 ? "@fast" : "@slow";
    if ((flags & (RESP_ADMIN | RESP_DANGEROUS)) != 0) {
        words_out[n++] = "@dangerous";
    }
    if ((connection && (command->subcommands == NULL || command == &resp_command_command)) ||
        command == &resp_command_wait) {
        words_out[n++] = "@connection";
    }
    if (strcmp(command->group, "transactions") == 0) {
        words_out[n++] = "@transaction";
    }
    return n;
}

uint32_t resp_key_flag_words(uint16_t key_flags, const char *words_out[RESP_WORDS_MAX])
{
    static const struct {
        uint16_t flag;
        const char *word;
    } table[] = {
        {RESP_KEY_RW, "RW"},
        {RESP_KEY_RO, "RO"},
        {RESP_KEY_OW, "OW"},
        {RESP_KEY_RM, "RM"},
        {RESP_KEY_ACCESS, "access"},
        {RESP_KEY_UPDATE, "update"},
        {RESP_KEY_INSERT, "insert"},
        {RESP_KEY_DELETE, "delete"},
        {RESP_KEY_VARIABLE, "variable_flags"},
    };
    uint32_t n = 0;
    for (uint32_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if ((key_flags & table[i].flag) != 0) {
            words_out[n++] = table[i].word;
        }
    }
    return n;
}
