#include "sim/phrase.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "sim/value.h"

#define TEXTS (ON_GENERAL | ON_FILLER)
#define RICH (ON_COUNTER | ON_GENERAL | ON_LENGTH)
#define ALL (RICH | ON_REGISTER | ON_FILLER)
/* On these the value says nothing, so phrases may leave anything there. */
#define WILD ON_EXTRA

#define QUIET .kind = PHRASE_QUIET, .classes = ALL, .hears = HEARS_TEXT
#define DEADLINE OPF_DEADLINE

const struct phrase phrases[] = {
    /* Reads. */
    {"GET %k", HISTORY_READ, OP_GET, 0, ALL | WILD, HEARS_VALUE, .share = 12},
    {"MGET %k", HISTORY_READ, OP_GET, 0, ALL, HEARS_VALUE, .share = 3, .several = true},
    {"GETEX %k", HISTORY_READ, OP_GETEX, OPF_KEEPTTL, ALL | WILD, HEARS_VALUE, .share = 1},
    {"GETRANGE %k 0 -1", HISTORY_READ, OP_GET, 0, ALL | WILD, HEARS_RANGE, .share = 1},
    {"SUBSTR %k 0 -1", HISTORY_READ, OP_GET, 0, ALL | WILD, HEARS_RANGE, .share = 1},
    {"GETRANGE %k 0 7", HISTORY_READ, OP_GET, 0, TEXTS | ON_REGISTER, HEARS_HEAD, .share = 1},
    {"STRLEN %k", HISTORY_READ, OP_STRLEN, 0, ON_LENGTH, HEARS_LENGTH, .share = 6},
    {"MEMORY USAGE %k", HISTORY_READ, OP_GET, 0, ON_LENGTH, HEARS_USAGE, .share = 1},
    {"EXISTS %k", HISTORY_EXISTS, OP_EXISTS, 0, RICH | WILD, HEARS_ONE, .share = 4,
     .several = true},
    {"TOUCH %k", HISTORY_EXISTS, OP_EXISTS, 0, RICH | WILD, HEARS_ONE, .share = 2, .several = true},
    {"TYPE %k", HISTORY_EXISTS, OP_EXISTS, 0, RICH | WILD, HEARS_TYPE, .share = 2},
    {"STRLEN %k", HISTORY_EXISTS, OP_STRLEN, 0, ON_COUNTER | ON_GENERAL | WILD, HEARS_LENGTH,
     .share = 4},
    {"OBJECT ENCODING %k", HISTORY_EXISTS, OP_GET, 0, RICH | WILD, HEARS_ENCODING, .share = 1},
    {"OBJECT REFCOUNT %k", HISTORY_EXISTS, OP_EXISTS, 0, RICH | WILD, HEARS_REFERENCE, .share = 1},
    {"OBJECT FREQ %k", HISTORY_EXISTS, OP_EXISTS, 0, RICH | WILD, HEARS_UNTRACKED, .share = 1},
    {"OBJECT IDLETIME %k", HISTORY_EXISTS, OP_EXISTS, 0, RICH | WILD, HEARS_UNTRACKED, .share = 1},
    {"MEMORY USAGE %k", HISTORY_EXISTS, OP_GET, 0, RICH | WILD, HEARS_USAGE, .share = 1},
    {"RENAME %k %k", HISTORY_EXISTS, OP_EXISTS, 0, RICH | WILD, HEARS_RENAMED, .share = 1},
    {"RENAMENX %k %k", HISTORY_EXISTS, OP_EXISTS, 0, RICH | WILD, HEARS_RENAMED, .share = 1},
    {"TTL %k", HISTORY_TTL, OP_DEADLINE, 0, RICH | WILD, HEARS_SECONDS, .share = 2},
    {"PTTL %k", HISTORY_TTL, OP_DEADLINE, 0, RICH | WILD, HEARS_PTTL, .share = 4},
    {"EXPIRETIME %k", HISTORY_TTL, OP_DEADLINE, 0, RICH | WILD, HEARS_SECONDS, .share = 2},
    {"PEXPIRETIME %k", HISTORY_TTL, OP_DEADLINE, 0, RICH | WILD, HEARS_DEADLINE, .share = 4},
    /* Writes. */
    {"SET %k %v", HISTORY_WRITE, OP_SET, 0, ALL | WILD, HEARS_OK, .share = 10},
    {"MSET %k %v", HISTORY_WRITE, OP_SET, 0, ALL, HEARS_OK, .share = 3, .several = true},
    {"SET %k %v KEEPTTL", HISTORY_WRITE, OP_SET, OPF_KEEPTTL, RICH | WILD, HEARS_OK, .share = 1},
    {"SET %k %v EX %T", HISTORY_WRITE, OP_SET, DEADLINE, RICH | WILD, HEARS_OK, .share = 1},
    {"SET %k %v PX %M", HISTORY_WRITE, OP_SET, DEADLINE, RICH | WILD, HEARS_OK, .share = 2},
    {"SET %k %v EXAT %S", HISTORY_WRITE, OP_SET, DEADLINE, RICH | WILD, HEARS_OK, .share = 1},
    {"SET %k %v PXAT %A", HISTORY_WRITE, OP_SET, DEADLINE, RICH | WILD, HEARS_OK, .share = 2},
    {"SETEX %k %T %v", HISTORY_WRITE, OP_SET, DEADLINE, RICH | WILD, HEARS_OK, .share = 1},
    {"PSETEX %k %M %v", HISTORY_WRITE, OP_SET, DEADLINE, RICH | WILD, HEARS_OK, .share = 2},
    {"SET %k %v NX", HISTORY_SET_ABSENT, OP_SET, OPF_NX, RICH | WILD, HEARS_HELD, .share = 3},
    {"SETNX %k %v", HISTORY_SET_ABSENT, OP_SET, OPF_NX, RICH | WILD, HEARS_ONE, .share = 3},
    {"MSETNX %k %v", HISTORY_SET_ABSENT, OP_SET, OPF_NX, RICH | WILD, HEARS_ONE, .share = 2},
    {"SET %k %v NX GET", HISTORY_SET_ABSENT, OP_SET, OPF_NX | OPF_GET, RICH | WILD, HEARS_UNSET,
     .share = 2},
    {"SET %k %v NX PX %M", HISTORY_SET_ABSENT, OP_SET, OPF_NX | DEADLINE, RICH | WILD, HEARS_HELD,
     .share = 2},
    {"SET %k %v XX", HISTORY_SET_PRESENT, OP_SET, OPF_XX, RICH | WILD, HEARS_HELD, .share = 3},
    {"SET %k %v XX KEEPTTL", HISTORY_SET_PRESENT, OP_SET, OPF_XX | OPF_KEEPTTL, RICH | WILD,
     HEARS_HELD, .share = 1},
    {"SET %k %v EX %T XX", HISTORY_SET_PRESENT, OP_SET, OPF_XX | DEADLINE, RICH | WILD, HEARS_HELD,
     .share = 1},
    {"SET %k %v XX GET", HISTORY_SET_PRESENT, OP_SET, OPF_XX | OPF_GET, RICH | WILD, HEARS_SET,
     .share = 2},
    {"SET %k %v IFEQ %e", HISTORY_SET_IF, OP_SET, OPF_IFEQ, RICH | WILD, HEARS_HELD, .share = 6},
    {"SET %k %v IFEQ %e GET", HISTORY_SET_IF, OP_SET, OPF_IFEQ | OPF_GET, RICH, HEARS_COMPARED,
     .share = 2},
    {"SET %k %v IFEQ %e KEEPTTL", HISTORY_SET_IF, OP_SET, OPF_IFEQ | OPF_KEEPTTL, RICH, HEARS_HELD,
     .share = 1},
    {"SET %k %v IFEQ %e PXAT %A", HISTORY_SET_IF, OP_SET, OPF_IFEQ | DEADLINE, RICH, HEARS_HELD,
     .share = 1},
    {"GETSET %k %v", HISTORY_GETSET, OP_GETSET, 0, RICH | WILD, HEARS_VALUE, .share = 4},
    {"SET %k %v GET", HISTORY_GETSET, OP_SET, OPF_GET, RICH | WILD, HEARS_VALUE, .share = 2},
    {"SET %k %v GET KEEPTTL", HISTORY_GETSET, OP_SET, OPF_GET | OPF_KEEPTTL, RICH, HEARS_VALUE,
     .share = 1},
    {"SET %k %v GET PX %M", HISTORY_GETSET, OP_SET, OPF_GET | DEADLINE, RICH, HEARS_VALUE,
     .share = 1},
    /* Deletions. Only a thread of the process can delete without asking what was there. */
    {"", HISTORY_DELETE, OP_DELETE, OPF_BLIND, RICH | WILD, HEARS_OK, .share = 1},
    {"DEL %k", HISTORY_DELETE_PRESENT, OP_DELETE, 0, RICH | WILD, HEARS_ONE, .share = 3,
     .several = true},
    {"UNLINK %k", HISTORY_DELETE_PRESENT, OP_DELETE, 0, RICH | WILD, HEARS_ONE, .share = 2,
     .several = true},
    {"DELIFEQ %k %e", HISTORY_DELETE_IF, OP_DELETE_IF, 0, RICH | WILD, HEARS_ONE, .share = 1},
    {"GETDEL %k", HISTORY_GETDEL, OP_GETDEL, 0, RICH | WILD, HEARS_VALUE, .share = 1},
    /* Changes. */
    {"INCRBY %k %n", HISTORY_ADD, OP_ADD, 0, ON_COUNTER | WILD, HEARS_SUM, .share = 4},
    {"DECRBY %k %m", HISTORY_ADD, OP_ADD, 0, ON_COUNTER | WILD, HEARS_SUM, .share = 2},
    {"INCR %k", HISTORY_ADD, OP_ADD, 0, ON_COUNTER | WILD, HEARS_SUM, .share = 2},
    {"DECR %k", HISTORY_ADD, OP_ADD, 0, ON_COUNTER | WILD, HEARS_SUM, .share = 2},
    {"INCRBYFLOAT %k %n", HISTORY_ADD, OP_ADD_FLOAT, 0, ON_COUNTER, HEARS_DECIMAL, .share = 2},
    {"APPEND %k %a", HISTORY_ADD, OP_APPEND, 0, ON_LENGTH | WILD, HEARS_SUM, .share = 4},
    {"SETRANGE %k %o %a", HISTORY_WRITE, OP_SETRANGE, 0, ON_LENGTH | WILD, HEARS_END, .share = 6},
    {"INCRBYFLOAT %k %f", HISTORY_ADD, OP_ADD_FLOAT, 0, WILD, HEARS_DECIMAL, .share = 2},
    /* Deadlines. */
    {"EXPIRE %k %T", HISTORY_EXPIRE, OP_EXPIRE, 0, RICH | WILD, HEARS_ONE, .share = 2},
    {"PEXPIRE %k %M", HISTORY_EXPIRE, OP_EXPIRE, 0, RICH | WILD, HEARS_ONE, .share = 4},
    {"EXPIREAT %k %S", HISTORY_EXPIRE, OP_EXPIRE, 0, RICH | WILD, HEARS_ONE, .share = 2},
    {"PEXPIREAT %k %A", HISTORY_EXPIRE, OP_EXPIRE, 0, RICH | WILD, HEARS_ONE, .share = 4},
    {"PEXPIREAT %k %A NX", HISTORY_EXPIRE, OP_EXPIRE, OPF_NX, RICH | WILD, HEARS_ONE_NX,
     .share = 1},
    {"PEXPIRE %k %M XX", HISTORY_EXPIRE, OP_EXPIRE, OPF_XX, RICH | WILD, HEARS_ONE_XX, .share = 1},
    {"EXPIRE %k %T GT", HISTORY_EXPIRE, OP_EXPIRE, OPF_GT, RICH | WILD, HEARS_ONE_NX, .share = 1},
    {"EXPIREAT %k %S LT", HISTORY_EXPIRE, OP_EXPIRE, OPF_LT, RICH | WILD, HEARS_ONE_NX, .share = 1},
    {"PERSIST %k", HISTORY_PERSIST, OP_PERSIST, 0, RICH | WILD, HEARS_ONE, .share = 1},
    {"GETEX %k EX %T", HISTORY_GETEX, OP_GETEX, 0, RICH | WILD, HEARS_VALUE, .share = 1},
    {"GETEX %k PX %M", HISTORY_GETEX, OP_GETEX, 0, RICH | WILD, HEARS_VALUE, .share = 2},
    {"GETEX %k EXAT %S", HISTORY_GETEX, OP_GETEX, 0, RICH | WILD, HEARS_VALUE, .share = 1},
    {"GETEX %k PXAT %A", HISTORY_GETEX, OP_GETEX, 0, RICH | WILD, HEARS_VALUE, .share = 2},
    {"GETEX %k PERSIST", HISTORY_GETEX, OP_GETEX, 0, RICH | WILD, HEARS_VALUE, .share = 2},
    /* Parts of values, of which no history knows. */
    {"GETRANGE %k 3 -2", HISTORY_READ, OP_GET, 0, WILD, HEARS_ANYTHING, .share = 1},
    {"SUBSTR %k -5 -1", HISTORY_READ, OP_GET, 0, WILD, HEARS_ANYTHING, .share = 1},
    /* What is answered without an operation. */
    {"COPY %k %k", QUIET, .share = 4, .replies = "-ERR"},
    {"COPY %k elsewhere REPLACE", QUIET, .share = 2, .replies = "-ERR"},
    {"RENAME %k elsewhere", QUIET, .share = 1, .replies = "-ERR"},
    {"RENAMENX %k elsewhere", QUIET, .share = 1, .replies = "-ERR"},
    {"MSETNX %k 1 elsewhere 2", QUIET, .share = 1, .replies = "-ERR"},
    {"SET %k 1 NX XX", QUIET, .share = 1, .replies = "-ERR"},
    {"SET %k 1 PX 0", QUIET, .share = 1, .replies = "-ERR"},
    {"EXPIRE %k soon", QUIET, .share = 1, .replies = "-ERR"},
    {"INCRBY %k much", QUIET, .share = 1, .replies = "-ERR"},
    {"SETRANGE %k -1 x", QUIET, .share = 1, .replies = "-ERR"},
    {"GET", QUIET, .share = 1, .replies = "-ERR"},
    {"LPUSH %k x", QUIET, .share = 1, .replies = "-ERR"},
    {"NONSENSE", QUIET, .share = 1, .replies = "-ERR"},
    {"MULTI ; EXEC", QUIET, .share = 2, .replies = "-ERR -EXECABORT"},
    {"MULTI ; SET %k 1 ; DISCARD", QUIET, .share = 2, .replies = "-ERR -ERR +OK"},
    {"PING", QUIET, .share = 3, .replies = "+PONG"},
    {"PING loud", QUIET, .share = 1, .replies = "$4"},
    {"ECHO hello", QUIET, .share = 1, .replies = "$5"},
    {"SELECT 0", QUIET, .share = 1, .replies = "+OK"},
    {"CLIENT ID", QUIET, .share = 1, .replies = ":"},
    {"CLIENT SETNAME somebody", QUIET, .share = 1, .replies = "+OK"},
    {"COMMAND COUNT", QUIET, .share = 1, .replies = ":"},
    {"TIME", QUIET, .share = 1, .replies = "*2"},
    {"READONLY", QUIET, .share = 1, .replies = "+OK"},
    {"READWRITE", QUIET, .share = 1, .replies = "+OK"},
    {"OBJECT HELP", QUIET, .share = 1, .replies = "*"},
};
const uint32_t phrases_n = sizeof phrases / sizeof phrases[0];
_Static_assert(sizeof phrases / sizeof phrases[0] <= SIM_PHRASES_MAX, "each has its counter");

void phrase_command(uint32_t phrase, char name_out[PHRASE_COMMAND_BYTES])
{
    HK_ASSERT(phrase < phrases_n);
    const char *words = phrases[phrase].words;
    bool nested = strncmp(words, "OBJECT ", 7) == 0 || strncmp(words, "MEMORY ", 7) == 0;
    uint32_t n = 0;
    for (; *words != '\0' && (*words != ' ' || nested); words++) {
        HK_ASSERT(n + 1 < PHRASE_COMMAND_BYTES);
        name_out[n++] = *words == ' ' ? '|' : (char)tolower((unsigned char)*words);
        nested = nested && *words != ' ';
    }
    name_out[n] = '\0';
}

bool phrase_has(const struct phrase *phrase, char letter)
{
    for (const char *at = phrase->words; (at = strchr(at, '%')) != NULL; at++) {
        if (at[1] == letter) {
            return true;
        }
    }
    return false;
}

bool phrase_has_deadline(const struct phrase *phrase)
{
    return phrase_has(phrase, 'T') || phrase_has(phrase, 'M') || phrase_has(phrase, 'S') ||
           phrase_has(phrase, 'A');
}
