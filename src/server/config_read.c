/* The configuration file, line by line. inih splits lines into names and values; what it would pass
 * over in silence (lines and section names that are too long, text behind a section's bracket,
 * continued lines, repeated sections) is refused or straightened here before it sees the line. */
#include "server/config_table.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/hash.h"
#include "server/config_reading.h"

/* inih keeps 49 bytes of a section's name. */
#define SECTION_NAME_MAX 49u

bool config_reading_fail(struct config_reading *r, uint32_t line, const char *format, ...)
{
    if (r->failed) {
        return false;
    }
    r->failed = true;
    int n = line == 0 ? snprintf(r->error, r->size, "%s: ", r->file)
                      : snprintf(r->error, r->size, "%s:%u: ", r->file, line);
    if (n >= 0 && (uint32_t)n < r->size) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(r->error + n, r->size - (uint32_t)n, format, args);
        va_end(args);
    }
    return false;
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t\r");
}

static void section_names(char *out, size_t size)
{
    size_t n = 0;
    for (uint32_t i = 0; i < SECTIONS; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s[%s]",
                              i == 0             ? ""
                              : i + 1 < SECTIONS ? ", "
                                                 : " and ",
                              config_sections[i].title);
    }
}

/* True if this section was not there before. */
static bool first_time(struct config_reading *r, uint32_t *line, const char *name)
{
    if (*line != 0) {
        return config_reading_fail(r, r->line,
                                   "section [%s] stands in line %u already; put its options there",
                                   name, *line);
    }
    *line = r->line;
    return true;
}

static bool open_space(struct config_reading *r, const char *name, const char *parameter)
{
    uint64_t space;
    if (!config_number_parse(parameter, &space) || space >= SPACES_MAX) {
        return config_reading_fail(r, r->line, "[%s]: a space is a number, 0 to %u", name,
                                   SPACES_MAX - 1);
    }
    if (!first_time(r, &r->space_lines[space], name)) {
        return false;
    }
    r->space = (uint32_t)space;
    config_space_defaults(&r->config->spaces[space]);
    return true;
}

static bool open_user(struct config_reading *r, const char *name, const char *parameter)
{
    if (parameter[0] == '\0' || strpbrk(parameter, " \t") != NULL) {
        return config_reading_fail(r, r->line, "[%s]: a user's name has no blanks: [user NAME]",
                                   name);
    }
    for (uint32_t i = 0; i < r->config->users_n; i++) {
        if (strcmp(r->config->users[i].name, parameter) == 0) {
            return config_reading_fail(r, r->line, "user %s is described in line %u already",
                                       parameter, r->user_lines[i]);
        }
    }
    r->user = config_user_add(r->config, parameter);
    if (r->user == NULL) {
        return config_reading_fail(r, r->line, "more than %u users", CONFIG_USERS_MAX);
    }
    r->user_lines[r->user - r->config->users] = r->line;
    return true;
}

/* name: what stands between the brackets. */
static bool open_section(struct config_reading *r, const char *name)
{
    char known[256];
    size_t parameter;
    enum config_section section = config_section_find(name, strlen(name), &parameter);
    if (section == SECTIONS) {
        section_names(known, sizeof known);
        return config_reading_fail(r, r->line, "unknown section [%s]; there are %s", name, known);
    }
    r->in_section = true;
    r->section = section;
    if (!config_sections[section].parameter) {
        return first_time(r, &r->section_lines[section], name);
    }
    /* Lines of options count anew in each section that may be repeated. */
    for (uint32_t i = 0; i < config_options_n; i++) {
        if (config_options[i].section == section) {
            r->lines[i] = 0;
        }
    }
    return section == SECTION_SPACE ? open_space(r, name, name + parameter)
                                    : open_user(r, name, name + parameter);
}

/* line: trimmed at its start, ends with NUL. */
static bool section_line(struct config_reading *r, const char *line)
{
    char name[SECTION_NAME_MAX + 1];
    size_t n = strcspn(line + 1, "]");
    if (line[1 + n] != ']') {
        return config_reading_fail(r, r->line, "a section is written [name]: the ] is missing");
    }
    const char *rest = skip_blanks(line + 1 + n + 1);
    if (*rest != '\0' && *rest != ';' && *rest != '#') {
        return config_reading_fail(r, r->line, "nothing may follow a section's name in its line");
    }
    if (n > SECTION_NAME_MAX) {
        return config_reading_fail(r, r->line, "a section's name has at most %u bytes",
                                   SECTION_NAME_MAX);
    }
    memcpy(name, line + 1, n);
    name[n] = '\0';
    return open_section(r, name);
}

/* The next line of the text, its bytes [*at_out, *n_out) without the line break. */
static bool next_line(struct config_reading *r, const char **at_out, uint32_t *n_out)
{
    if (r->failed || r->at >= r->n) {
        return false;
    }
    const char *at = r->text + r->at;
    const char *end = memchr(at, '\n', r->n - r->at);
    *at_out = at;
    *n_out = end == NULL ? r->n - r->at : (uint32_t)(end - at);
    r->at += *n_out + (end != NULL);
    r->line++;
    return true;
}

static bool line_clean(struct config_reading *r, const char *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)at[i];
        if ((c < 0x20 && c != '\t' && !(c == '\r' && i + 1 == n)) || c == 0x7f) {
            return config_reading_fail(r, r->line, "a control character (byte %u of the line)",
                                       i + 1);
        }
    }
    return true;
}

/* inih's reader: one line, which must fit whole. Blanks before it are left out, as inih would take
 * an indented line for more of the value above. */
static char *read_line(char *to, int size, void *stream)
{
    struct config_reading *r = stream;
    const char *at;
    uint32_t n;
    if (!next_line(r, &at, &n) || !line_clean(r, at, n)) {
        return NULL;
    }
    if (r->line == 1 && n >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
        at += 3;
        n -= 3;
    }
    while (n > 0 && (*at == ' ' || *at == '\t')) {
        at++;
        n--;
    }
    while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t' || at[n - 1] == '\r')) {
        n--;
    }
    bool comment = n > 0 && (*at == '#' || *at == ';');
    uint32_t room = (uint32_t)size - 3;
    if (comment) {
        n = n < room ? n : room;
    } else if (n > room) {
        (void)config_reading_fail(r, r->line,
                                  "a line has at most %u bytes without blanks around it", room);
        return NULL;
    }
    memcpy(to, at, n);
    to[n] = '\0';
    if (*to == '[' && !section_line(r, to)) {
        return NULL;
    }
    to[n] = '\n';
    to[n + 1] = '\0';
    return to;
}

static bool unknown_option(struct config_reading *r, const char *name)
{
    char known[CONFIG_ERROR_MAX / 2];
    size_t n = 0;
    known[0] = '\0';
    for (uint32_t i = 0; i < config_options_n; i++) {
        const struct config_option *option = &config_options[i];
        const char *section = config_sections[option->section].title;
        if (option->alias != NULL && strcmp(option->alias, name) == 0) {
            return config_reading_fail(r, r->line,
                                       "unknown option %s; here it is called %s, in [%s]", name,
                                       option->name, section);
        }
        if (option->section != SECTION_PEERS && strcmp(option->name, name) == 0) {
            return config_reading_fail(r, r->line, "option %s belongs in [%s], not here", name,
                                       section);
        }
        if (option->section == r->section) {
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n == 0 ? "" : ", ",
                                  option->name);
            HK_ASSERT(n < sizeof known);
        }
    }
    return config_reading_fail(r, r->line, "unknown option %.60s; [%s] takes %s", name,
                               config_sections[r->section].title, known);
}

static bool take_peer(struct config_reading *r, const char *name, const char *value)
{
    uint64_t id;
    if (!config_number_parse(name, &id) || id >= NODES_MAX) {
        return config_reading_fail(r, r->line,
                                   "[peers] takes lines like 0 = host:port, the node's "
                                   "number being 0 to 63; %.60s is none",
                                   name);
    }
    const char *why = gate_address_invalid(value);
    if (why == NULL && strncmp(value, "unix:", 5) == 0) {
        why = "peers are reached by host:port";
    }
    if (why != NULL) {
        return config_reading_fail(r, r->line, "%s = %.200s: %s", name, value, why);
    }
    if (r->peer_lines[id] != 0) {
        return config_reading_fail(r, r->line,
                                   "node %s is in line %u already; every node has a number of its "
                                   "own",
                                   name, r->peer_lines[id]);
    }
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        if (r->peer_lines[i] != 0 && strcmp(r->config->peers[i].text, value) == 0) {
            return config_reading_fail(r, r->line,
                                       "%s is the address of node %u in line %u already; every "
                                       "node has its own",
                                       value, i, r->peer_lines[i]);
        }
    }
    r->peer_lines[id] = r->line;
    r->config->nodes |= nodeset_of((uint8_t)id);
    (void)snprintf(r->config->peers[id].text, GATE_ADDRESS_MAX, "%s", value);
    return true;
}

static bool take_listen(struct config_reading *r, const char *value)
{
    struct config *config = r->config;
    const char *why = gate_address_invalid(value);
    if (why != NULL) {
        return config_reading_fail(r, r->line, "listen = %.200s: %s", value, why);
    }
    if (config->listens_n == CONFIG_LISTENS_MAX) {
        return config_reading_fail(r, r->line, "more than %u lines of listen", CONFIG_LISTENS_MAX);
    }
    for (uint32_t i = 0; i < config->listens_n; i++) {
        if (strcmp(config->listens[i].text, value) == 0) {
            return config_reading_fail(r, r->line, "listen = %s stands in line %u already", value,
                                       r->listen_lines[i]);
        }
    }
    r->listen_lines[config->listens_n] = r->line;
    (void)snprintf(config->listens[config->listens_n++].text, GATE_ADDRESS_MAX, "%s", value);
    return true;
}

static bool take_password(struct config_reading *r, const char *value)
{
    char why[CONFIG_ERROR_MAX] = "";
    const struct config_complaint complaint = {why, sizeof why};
    struct config_user *user = r->user;
    if (user->passwords_n == CONFIG_PASSWORDS_MAX) {
        return config_reading_fail(r, r->line, "more than %u passwords of one user",
                                   CONFIG_PASSWORDS_MAX);
    }
    if (!config_password_parse(value, user->passwords[user->passwords_n], &complaint)) {
        return config_reading_fail(r, r->line, "%s", why);
    }
    user->passwords_n++;
    return true;
}

/* The clear text of requirepass becomes user "default", whom a section may describe as well: but
 * not both. */
static bool take_requirepass(struct config_reading *r, const char *value)
{
    struct config_user *user = config_user_find(r->config, "default");
    if (user != NULL) {
        return config_reading_fail(r, r->line, "user default is described in line %u already",
                                   r->user_lines[user - r->config->users]);
    }
    user = config_user_add(r->config, "default");
    if (user == NULL) {
        return config_reading_fail(r, r->line, "more than %u users", CONFIG_USERS_MAX);
    }
    r->user_lines[user - r->config->users] = r->line;
    r->user = user;
    return take_password(r, value);
}

static bool take_scalar(struct config_reading *r, const struct config_option *option,
                        const char *value)
{
    char why[CONFIG_ERROR_MAX / 2] = "";
    const struct config_complaint complaint = {why, sizeof why};
    void *base =
        option->section == SECTION_SPACE ? (void *)&r->config->spaces[r->space] : (void *)r->config;
    return config_value_set(option, base, value, &complaint) ||
           config_reading_fail(r, r->line, "%s", why);
}

static bool take(struct config_reading *r, const struct config_option *option, const char *name,
                 const char *value)
{
    switch (option->type) {
    case CONFIG_PEER:
        return take_peer(r, name, value);
    case CONFIG_LISTEN:
        return take_listen(r, value);
    case CONFIG_PASSWORD:
        return take_password(r, value);
    case CONFIG_REQUIREPASS:
        return take_requirepass(r, value);
    case CONFIG_NUMBER:
    case CONFIG_SIGNED:
    case CONFIG_SIZE:
    case CONFIG_SWITCH:
    case CONFIG_CHOICE:
    case CONFIG_WORD:
    case CONFIG_PATH:
    case CONFIG_ADDRESS:
        return take_scalar(r, option, value);
    case CONFIG_TYPES:
        break;
    }
    HK_ASSERT(false);
    return false;
}

/* inih's handler: one option. What was opened by section_line counts, not what inih kept of it. */
static int take_option(void *context, const char *section, const char *name, const char *value)
{
    struct config_reading *r = context;
    (void)section;
    if (r->failed) {
        return 0;
    }
    if (!r->in_section) {
        return config_reading_fail(r, r->line, "%.60s stands before the first [section]", name);
    }
    const struct config_option *option = config_option_find(r->section, name);
    if (option == NULL) {
        return unknown_option(r, name);
    }
    uint32_t *line = &r->lines[config_option_index(option)];
    bool repeatable = option->type == CONFIG_PEER || option->type == CONFIG_LISTEN ||
                      option->type == CONFIG_PASSWORD;
    if (*line != 0 && !repeatable) {
        return config_reading_fail(r, r->line, "%s stands in line %u already", name, *line);
    }
    *line = r->line;
    if (r->section == SECTION_SPACE) {
        r->space_option_lines[r->space][config_option_index(option)] = r->line;
    }
    if (value[0] == '\0') {
        return config_reading_fail(r, r->line, "%s has no value", name);
    }
    return take(r, option, name, value);
}

static bool read_text(struct config_reading *r)
{
    int line = ini_parse_stream(read_line, r, take_option, r);
    if (r->failed) {
        return false;
    }
    if (line < 0) {
        return config_reading_fail(r, 0, "no memory to read it");
    }
    if (line > 0) {
        return config_reading_fail(r, (uint32_t)line,
                                   "this is neither a [section] nor name = value");
    }
    return config_reading_check(r);
}

static int read_all(const char *path, struct bytes text, const uint8_t *key,
                    struct config *config_out, char *error_out, uint32_t size)
{
    struct config_reading *r = calloc(1, sizeof *r);
    error_out[0] = '\0';
    if (r == NULL) {
        (void)snprintf(error_out, size, "%s: no memory to read it", path);
        return HK_ERR_NOMEM;
    }
    r->config = config_out;
    r->file = path[0] == '\0' ? "configuration" : path;
    r->text = (const char *)text.at;
    r->n = text.n;
    r->key = key;
    r->error = error_out;
    r->size = size;
    config_defaults(config_out);
    (void)snprintf(config_out->path, sizeof config_out->path, "%s", path);
    bool good = read_text(r);
    free(r);
    return good ? HK_OK : HK_ERR_INVALID;
}

int config_file_load(const char *path, char **text_out, uint32_t *n_out)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return HK_ERR_IO;
    }
    int result = HK_ERR_IO;
    char *text = NULL;
    size_t n = 0;
    if (fstat(fd, &about) != 0) {
        goto out;
    }
    if (about.st_size > (off_t)CONFIG_FILE_MAX) {
        result = HK_ERR_TOOBIG;
        goto out;
    }
    text = malloc(CONFIG_FILE_MAX + 1);
    if (text == NULL) {
        result = HK_ERR_NOMEM;
        goto out;
    }
    for (;;) {
        ssize_t more = read(fd, text + n, CONFIG_FILE_MAX + 1 - n);
        if (more < 0 && errno == EINTR) {
            continue;
        }
        if (more < 0) {
            goto out;
        }
        n += (size_t)more;
        if (n > CONFIG_FILE_MAX) {
            result = HK_ERR_TOOBIG;
            goto out;
        }
        if (more == 0) {
            break;
        }
    }
    text[n] = '\0';
    *text_out = text;
    *n_out = (uint32_t)n;
    text = NULL;
    result = HK_OK;
out:;
    int error = errno;
    free(text);
    (void)close(fd);
    errno = error;
    return result;
}

int config_read(const char *path, struct config *config_out, char *error_out, uint32_t size)
{
    return config_read_keyed(path, NULL, config_out, error_out, size);
}

int config_read_keyed(const char *path, const uint8_t *key, struct config *config_out,
                      char *error_out, uint32_t size)
{
    char *text;
    uint32_t n;
    if (path[0] == '\0' || strlen(path) >= sizeof config_out->path) {
        (void)snprintf(error_out, size, "the path of the configuration must have 1 to %u bytes",
                       CONFIG_TEXT_MAX - 1);
        return HK_ERR_INVALID;
    }
    int error = config_file_load(path, &text, &n);
    if (error != HK_OK) {
        (void)snprintf(error_out, size, "%s: cannot be read: %s", path,
                       error == HK_ERR_IO       ? strerror(errno)
                       : error == HK_ERR_TOOBIG ? "it has over 1 MiB; is it the right file?"
                                                : hk_err_text(error));
        return HK_ERR_IO;
    }
    error = read_all(path, bytes_of(text, n), key, config_out, error_out, size);
    free(text);
    return error;
}

int config_parse(struct bytes text, const uint8_t *key, struct config *config_out, char *error_out,
                 uint32_t size)
{
    if (text.n > CONFIG_FILE_MAX) {
        (void)snprintf(error_out, size, "configuration: over 1 MiB");
        return HK_ERR_INVALID;
    }
    return read_all("", text, key, config_out, error_out, size);
}
