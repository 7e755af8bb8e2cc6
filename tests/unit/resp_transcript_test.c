/* Replays what real clients send when they connect: tests/system/transcripts, whose README has the
 * format. Each file runs twice: as it is, and byte by byte. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/resp_admin.h"

#define FOLDER "tests/system/transcripts"
#define LINE_MAX_BYTES 4096u

/* ---- Matching ---- */

/* The reply that is looked at, and the expectation; both move on as parts of them agree. */
struct match {
    const char *reply, *reply_end;
    const char *expected;
    bool resp3;
    char why[128];
};

static bool no(struct match *match, const char *why)
{
    if (match->why[0] == '\0') {
        snprintf(match->why, sizeof match->why, "%s at \"%.40s\"", why, match->expected);
    }
    return false;
}

static bool expect_char(struct match *match, char c)
{
    while (*match->expected == ' ') {
        match->expected++;
    }
    if (*match->expected != c) {
        return false;
    }
    match->expected++;
    while (*match->expected == ' ') {
        match->expected++;
    }
    return true;
}

/* The line behind the type byte, which the reply moves past. */
static struct bytes take_line(struct match *match)
{
    const char *from = match->reply + 1;
    const char *end = from;
    while (end < match->reply_end && *end != '\r') {
        end++;
    }
    match->reply = end + 2 <= match->reply_end ? end + 2 : match->reply_end;
    return bytes_of(from, (uint32_t)(end - from));
}

static struct bytes take_bulk(struct match *match)
{
    bool verbatim = *match->reply == '=';
    uint32_t n = (uint32_t)strtoul(match->reply + 1, NULL, 10);
    (void)take_line(match);
    struct bytes bulk = bytes_of(match->reply, n);
    if (n + 2 > (uint32_t)(match->reply_end - match->reply)) {
        match->reply = match->reply_end;
        return bytes_of(match->reply, 0);
    }
    match->reply += n + 2;
    return verbatim && n >= 4 ? bytes_of(bulk.at + 4, n - 4) : bulk;
}

/* One whole value; false if it is an error or not whole. */
static bool skip_value(struct match *match)
{
    if (match->reply >= match->reply_end) {
        return no(match, "no reply");
    }
    char type = *match->reply;
    long n = strtol(match->reply + 1, NULL, 10);
    if (type == '-') {
        return no(match, "an error");
    }
    if ((type == '$' || type == '=') && n >= 0) {
        (void)take_bulk(match);
        return true;
    }
    (void)take_line(match);
    if (strchr("*~%", type) == NULL) {
        return true;
    }
    for (long i = 0; i < (type == '%' ? 2 * n : n); i++) {
        if (!skip_value(match)) {
            return false;
        }
    }
    return true;
}

/* A text in quotes, its escapes resolved; the expectation moves past it. */
static struct bytes take_quoted(const char **at, char *out)
{
    uint32_t n = 0;
    for ((*at)++; **at != '"'; (*at)++) {
        assert_true(**at != '\0');
        char c = **at;
        if (c == '\\') {
            (*at)++;
            c = **at == 'r' ? '\r' : **at == 'n' ? '\n' : **at;
            if (**at == 'x') {
                char digits[3] = {(*at)[1], (*at)[2], '\0'};
                c = (char)strtoul(digits, NULL, 16);
                *at += 2;
            }
        }
        out[n++] = c;
    }
    (*at)++;
    return bytes_of(out, n);
}

/* Only `*` is special. */
static bool fits_glob(struct bytes glob, struct bytes bytes)
{
    uint32_t i = 0, j = 0, star = UINT32_MAX, from = 0;
    while (j < bytes.n) {
        if (i < glob.n && glob.at[i] == '*') {
            star = i++;
            from = j;
        } else if (i < glob.n && glob.at[i] == bytes.at[j]) {
            i++;
            j++;
        } else if (star != UINT32_MAX) {
            i = star + 1;
            j = ++from;
        } else {
            return false;
        }
    }
    while (i < glob.n && glob.at[i] == '*') {
        i++;
    }
    return i == glob.n;
}

static bool match_value(struct match *match);

/* The elements of an aggregate up to `end`; map: keys and values with a colon between. */
static bool match_elements(struct match *match, long n, char end, bool map)
{
    long i = 0;
    for (; !expect_char(match, end); i++) {
        if (i > 0 && !expect_char(match, map && i % 2 == 1 ? ':' : ',')) {
            return no(match, "no separator");
        }
        if (strncmp(match->expected, "...", 3) == 0) {
            match->expected += 3;
            for (; i < n; i++) {
                if (!skip_value(match)) {
                    return false;
                }
            }
            return expect_char(match, end) || no(match, "... is not last");
        }
        if (i >= n) {
            return no(match, "fewer elements");
        }
        if (!match_value(match)) {
            return false;
        }
    }
    return i == n || no(match, "more elements");
}

static bool match_aggregate(struct match *match)
{
    char open = *match->expected++;
    char type = open == '(' && match->resp3 ? '~' : open == '{' && match->resp3 ? '%' : '*';
    if (*match->reply != type) {
        return no(match, "another type");
    }
    long n = strtol(match->reply + 1, NULL, 10);
    (void)take_line(match);
    return match_elements(match, type == '%' ? 2 * n : n, (char)(open == '(' ? ')' : open + 2),
                          open == '{');
}

static bool match_simple(struct match *match)
{
    bool inside = strpbrk(match->expected, ",]})") != NULL && *match->expected == '+';
    size_t n = inside ? strcspn(match->expected + 1, ",]})") : strlen(match->expected + 1);
    struct bytes expected = bytes_of(match->expected + 1, (uint32_t)n);
    if (*match->reply != *match->expected) {
        return no(match, "another type");
    }
    struct bytes line = take_line(match);
    bool cut = *match->expected == '-' && n > 0 && match->expected[n] == '*';
    if (cut ? line.n < n - 1 || memcmp(line.at, expected.at, n - 1) != 0
            : !bytes_equal(line, expected)) {
        return no(match, "another text");
    }
    match->expected += n + 1;
    return true;
}

static bool match_string(struct match *match)
{
    char buffer[LINE_MAX_BYTES];
    bool glob = *match->expected == '~';
    bool null = match->reply[1] == '-';
    match->expected += glob ? 1 : 0;
    struct bytes expected = take_quoted(&match->expected, buffer);
    if (null || (*match->reply != '$' && (!glob || *match->reply != '='))) {
        return no(match, "no string");
    }
    struct bytes bulk = take_bulk(match);
    return (glob ? fits_glob(expected, bulk) : bytes_equal(expected, bulk)) ||
           no(match, "another string");
}

static bool match_number(struct match *match)
{
    size_t n = strspn(match->expected + 1, "-0123456789*");
    struct bytes expected = bytes_of(match->expected + 1, (uint32_t)n);
    if (*match->reply != ':') {
        return no(match, "no number");
    }
    struct bytes line = take_line(match);
    match->expected += n + 1;
    return (expected.n == 1 && expected.at[0] == '*') || bytes_equal(line, expected) ||
           no(match, "another number");
}

static bool match_null(struct match *match)
{
    bool is_null = match->resp3
                       ? *match->reply == '_'
                       : (*match->reply == '$' || *match->reply == '*') && match->reply[1] == '-';
    if (!is_null) {
        return no(match, "not null");
    }
    (void)take_line(match);
    match->expected += 3;
    return true;
}

static bool match_value(struct match *match)
{
    if (match->reply >= match->reply_end) {
        return no(match, "no reply");
    }
    switch (*match->expected) {
    case '*':
        match->expected++;
        return skip_value(match);
    case '+':
    case '-':
        return match_simple(match);
    case ':':
        return match_number(match);
    case '"':
    case '~':
        return match_string(match);
    case 'n':
        return match_null(match);
    case '[':
    case '(':
    case '{':
        return match_aggregate(match);
    default:
        return no(match, "no expectation");
    }
}

/* ---- Replaying ---- */

enum manner { WHOLE, BYTES, MANNERS };

/* Replies that came and were not expected yet. */
struct replay {
    struct admin admin;
    const char *name;
    uint32_t line;
    bool resp3, closed;
    char *sent;
    size_t sent_n;
    char *got;
    size_t got_n, got_at;
};

static void complain(const struct replay *replay, const char *why)
{
    print_message("%s:%u: %s\nreply: %.400s\n", replay->name, replay->line, why,
                  replay->got + replay->got_at);
    fail();
}

static void keep_output(struct replay *replay)
{
    struct rig *rig = &replay->admin.rig;
    replay->got = realloc(replay->got, replay->got_n + rig->output_n + 1);
    assert_non_null(replay->got);
    if (rig->output_n > 0) {
        memcpy(replay->got + replay->got_n, rig->output, rig->output_n);
    }
    replay->got_n += rig->output_n;
    replay->got[replay->got_n] = '\0';
}

static void send_piece(struct replay *replay, struct bytes piece)
{
    (void)rig_send_bytes(&replay->admin.rig, piece);
    keep_output(replay);
    replay->closed = replay->closed || replay->admin.rig.last == RESP_CLOSE;
}

static void flush(struct replay *replay, enum manner manner)
{
    if (replay->sent_n == 0) {
        return;
    }
    if (manner != BYTES) {
        send_piece(replay, bytes_of(replay->sent, (uint32_t)replay->sent_n));
    }
    for (size_t i = 0; manner == BYTES && i < replay->sent_n; i++) {
        send_piece(replay, bytes_of(replay->sent + i, 1));
    }
    replay->sent_n = 0;
}

static void add(struct replay *replay, const void *bytes, size_t n)
{
    replay->sent = realloc(replay->sent, replay->sent_n + n);
    assert_non_null(replay->sent);
    memcpy(replay->sent + replay->sent_n, bytes, n);
    replay->sent_n += n;
}

static void add_command(struct replay *replay, const char *words)
{
    char word[64][512];
    struct bytes args[64];
    uint32_t n = 0;
    char head[32];
    while (*words != '\0') {
        assert_true(n < 64);
        if (*words == '"') {
            args[n] = take_quoted(&words, word[n]);
        } else {
            size_t end = strcspn(words, " ");
            args[n] = bytes_of(words, (uint32_t)end);
            words += end;
        }
        n++;
        words += *words == ' ' ? 1 : 0;
    }
    add(replay, head, (size_t)snprintf(head, sizeof head, "*%u\r\n", n));
    for (uint32_t i = 0; i < n; i++) {
        add(replay, head, (size_t)snprintf(head, sizeof head, "$%u\r\n", args[i].n));
        add(replay, args[i].at, args[i].n);
        add(replay, "\r\n", 2);
    }
}

static void expect_reply(struct replay *replay, const char *expected)
{
    struct match match = {.reply = replay->got + replay->got_at,
                          .reply_end = replay->got + replay->got_n,
                          .expected = expected};
    if (replay->got == NULL || replay->got_at == replay->got_n) {
        complain(replay, "no reply");
    }
    /* A map can only be RESP3's; HELLO's own reply is already in the version that it picks. */
    match.resp3 = replay->resp3 || *match.reply == '%';
    replay->resp3 = match.resp3;
    if (!match_value(&match)) {
        complain(replay, match.why);
    }
    if (*match.expected != '\0') {
        complain(replay, "the expectation goes on");
    }
    replay->got_at = (size_t)(match.reply - replay->got);
}

static void replay_line(struct replay *replay, const char *line, enum manner manner)
{
    if (strncmp(line, "> ", 2) == 0) {
        add_command(replay, line + 2);
    } else if (strncmp(line, "! ", 2) == 0) {
        add(replay, line + 2, strlen(line + 2));
        add(replay, "\r\n", 2);
    } else if (strncmp(line, "< ", 2) == 0) {
        flush(replay, manner);
        expect_reply(replay, line + 2);
    } else if (strcmp(line, "<eof") == 0) {
        flush(replay, manner);
        if (!replay->closed) {
            complain(replay, "not closed");
        }
    } else if (line[0] != '\0' && line[0] != '#') {
        complain(replay, "a line that means nothing");
    }
}

static void replay_lines(const char *name, FILE *file, enum manner manner)
{
    struct replay *replay = calloc(1, sizeof *replay);
    static char password[128];
    char line[LINE_MAX_BYTES];
    bool begun = false;
    assert_non_null(replay);
    replay->name = name;
    while (fgets(line, sizeof line, file) != NULL) {
        replay->line++;
        line[strcspn(line, "\n")] = '\0';
        if (!begun && (line[0] == '#' || line[0] == '\0')) {
            continue;
        }
        if (!begun) {
            bool secret = sscanf(line, "@password %127s", password) == 1;
            admin_init(&replay->admin, secret ? password : NULL);
            replay->admin.rig.awake = true;
            begun = true;
            if (secret) {
                continue;
            }
        }
        replay_line(replay, line, manner);
    }
    assert_true(begun);
    flush(replay, manner);
    if (replay->got_at != replay->got_n) {
        complain(replay, "more replies than are expected");
    }
    admin_deinit(&replay->admin);
    free(replay->sent);
    free(replay->got);
    free(replay);
}

static void replays_all_transcripts(void **state)
{
    (void)state;
    DIR *folder = opendir(FOLDER);
    struct dirent *entry;
    uint32_t n = 0;
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        char path[512];
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 4, ".txt") != 0) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", FOLDER, entry->d_name);
        for (uint32_t manner = 0; manner < MANNERS; manner++) {
            FILE *file = fopen(path, "r");
            assert_non_null(file);
            replay_lines(path, file, (enum manner)manner);
            fclose(file);
        }
        n++;
    }
    closedir(folder);
    assert_true(n >= 10);
}

static bool matches(const char *reply, const char *expected, bool resp3)
{
    struct match match = {
        .reply = reply, .reply_end = reply + strlen(reply), .expected = expected, .resp3 = resp3};
    return match_value(&match) && *match.expected == '\0' && match.reply == match.reply_end;
}

/* A matcher that agrees with everything would make all transcripts worthless. */
static void the_matcher_can_refuse(void **state)
{
    (void)state;
    assert_true(matches("+OK\r\n", "+OK", false));
    assert_false(matches("+OKAY\r\n", "+OK", false));
    assert_false(matches("-ERR\r\n", "*", false));
    assert_true(matches("-ERR no\r\n", "-ERR *", false));
    assert_false(matches("-NO\r\n", "-ERR *", false));
    assert_false(matches("-ERR no\r\n", "-ERR", false));
    assert_true(matches(":5\r\n", ":5", false));
    assert_true(matches(":5\r\n", ":*", false));
    assert_false(matches(":55\r\n", ":5", false));
    assert_false(matches("+5\r\n", ":5", false));
    assert_true(matches("$2\r\nab\r\n", "\"ab\"", false));
    assert_true(matches("$2\r\na\r\r\n", "\"a\\r\"", false));
    assert_false(matches("$2\r\nab\r\n", "\"a\"", false));
    assert_false(matches("$-1\r\n", "~\"*\"", false));
    assert_true(matches("=6\r\ntxt:ab\r\n", "~\"a*\"", true));
    assert_false(matches("=6\r\ntxt:ab\r\n", "~\"b*\"", true));
    assert_false(matches("=6\r\ntxt:ab\r\n", "\"ab\"", true));
    assert_true(matches("$-1\r\n", "nil", false));
    assert_true(matches("*-1\r\n", "nil", false));
    assert_true(matches("_\r\n", "nil", true));
    assert_false(matches("$-1\r\n", "nil", true));
    assert_false(matches("$0\r\n\r\n", "nil", false));
    assert_true(matches("*2\r\n:1\r\n:2\r\n", "[:1, :2]", false));
    assert_false(matches("*2\r\n:1\r\n:2\r\n", "[:1]", false));
    assert_false(matches("*1\r\n:1\r\n", "[:1, :2]", false));
    assert_true(matches("*2\r\n:1\r\n:2\r\n", "[:1, ...]", false));
    assert_true(matches("*0\r\n", "[...]", false));
    assert_false(matches("*2\r\n:1\r\n:2\r\n", "[:2, ...]", false));
    assert_true(matches("%1\r\n$1\r\na\r\n*0\r\n", "{\"a\": []}", true));
    assert_true(matches("*2\r\n$1\r\na\r\n*0\r\n", "{\"a\": []}", false));
    assert_false(matches("*2\r\n$1\r\na\r\n*0\r\n", "{\"a\": []}", true));
    assert_true(matches("~2\r\n+a\r\n+b\r\n", "(+a, +b)", true));
    assert_true(matches("*2\r\n+a\r\n+b\r\n", "(+a, +b)", false));
    assert_false(matches("*2\r\n+a\r\n+b\r\n", "(+a, +b)", true));
    assert_false(matches("~2\r\n+a\r\n+b\r\n", "(+b, +a)", true));
    assert_true(matches("*1\r\n+a\r\n", "*", false));
    assert_false(matches("*1\r\n-ERR\r\n", "*", false));
    assert_false(matches("", "+OK", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_matcher_can_refuse),
        cmocka_unit_test(replays_all_transcripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
