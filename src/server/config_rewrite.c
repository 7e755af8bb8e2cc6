/* CONFIG REWRITE: the file again, line by line, with only those values new that CONFIG SET
 * changed. An option that has a line keeps its place there, blanks and comments included; others
 * are added at the end of their section, and sections at the end of the file. */
#include "server/config_table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "server/file.h"

struct rewriting {
    const struct config *config;
    char *out; /* grows; the end of the last line of the section that is copied is at section_end */
    size_t n, capacity;
    bool no_memory;
    uint64_t left; /* bits of options whose new value does not stand in out yet */
    int section;   /* enum config_section; -1: before the first, or one without a row to change */
    bool user_default;
    size_t section_end; /* behind the last line of the section that is neither blank nor comment */
};

static void insert(struct rewriting *w, size_t at, const char *bytes, size_t n)
{
    if (w->no_memory || n == 0) {
        return;
    }
    if (w->n + n > w->capacity) {
        size_t capacity = (w->n + n) * 2;
        char *out = realloc(w->out, capacity);
        if (out == NULL) {
            w->no_memory = true;
            return;
        }
        w->out = out;
        w->capacity = capacity;
    }
    memmove(w->out + at + n, w->out + at, w->n - at);
    memcpy(w->out + at, bytes, n);
    w->n += n;
}

static void append(struct rewriting *w, const char *bytes, size_t n)
{
    insert(w, w->n, bytes, n);
}

/* "name = value\n"; empty when requirepass was taken away. */
static size_t option_line(const struct rewriting *w, const struct config_option *option,
                          char line_out[2 * CONFIG_TEXT_MAX])
{
    char value[CONFIG_TEXT_MAX];
    if (option->type == CONFIG_REQUIREPASS) {
        config_requirepass_get(w->config, value);
    } else {
        config_value_get(option, w->config, value);
    }
    line_out[0] = '\0';
    return value[0] == '\0'
               ? 0
               : (size_t)snprintf(line_out, 2 * CONFIG_TEXT_MAX, "%s = %s\n", option->name, value);
}

/* Adds what the section that ends here lacks. */
static void close_section(struct rewriting *w)
{
    char line[2 * CONFIG_TEXT_MAX];
    for (uint32_t i = 0; w->section >= 0 && i < config_options_n; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if ((w->left & bit) == 0 || (int)config_options[i].section != w->section) {
            continue;
        }
        size_t n = option_line(w, &config_options[i], line);
        insert(w, w->section_end, line, n);
        w->section_end += n;
        w->left &= ~bit;
    }
    w->section = -1;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void open_section(struct rewriting *w, const char *name, size_t n)
{
    size_t at;
    close_section(w);
    enum config_section section = config_section_find(name, n, &at);
    w->user_default = section == SECTION_USER && n - at == strlen("default") &&
                      memcmp(name + at, "default", n - at) == 0;
    if (section != SECTIONS && !config_sections[section].parameter) {
        w->section = (int)section;
    }
}

/* The changed option that a line "name = value" of the present section sets, or NULL. */
static const struct config_option *changed_option(const struct rewriting *w, const char *name,
                                                  size_t n)
{
    for (uint32_t i = 0; w->section >= 0 && i < config_options_n; i++) {
        const struct config_option *option = &config_options[i];
        if ((w->config->changed >> i & 1) != 0 && (int)option->section == w->section &&
            strlen(option->name) == n && memcmp(option->name, name, n) == 0) {
            return option;
        }
    }
    return NULL;
}

static bool requirepass_changed(const struct config *config)
{
    const struct config_option *option = config_option_find(SECTION_CLIENTS, "requirepass");
    return (config->changed >> config_option_index(option) & 1) != 0;
}

/* Where the comment behind a value begins (the blanks before it included), or n. */
static size_t comment_at(const char *line, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (line[i] == ';' && blank(line[i - 1])) {
            while (i > 0 && blank(line[i - 1])) {
                i--;
            }
            return i;
        }
    }
    while (n > 0 && blank(line[n - 1])) {
        n--;
    }
    return n;
}

/* A line of an option, from its first byte that is no blank on; n bytes without the break. */
static void copy_option(struct rewriting *w, const char *line, size_t n)
{
    char text[2 * CONFIG_TEXT_MAX];
    size_t name_n = 0;
    while (name_n < n && line[name_n] != '=' && line[name_n] != ':') {
        name_n++;
    }
    while (name_n > 0 && blank(line[name_n - 1])) {
        name_n--;
    }
    const struct config_option *option = changed_option(w, line, name_n);
    if (option == NULL) {
        append(w, line, n);
        append(w, "\n", 1);
        return;
    }
    size_t text_n = option_line(w, option, text);
    if (text_n > 0) {
        size_t comment = comment_at(line, n);
        append(w, text, text_n - 1);
        append(w, line + comment, n - comment);
        append(w, "\n", 1);
    }
    w->left &= ~(UINT64_C(1) << config_option_index(option));
}

/* Whether the whole section [user default] goes, because requirepass describes that user now. */
static bool dropped(const struct rewriting *w)
{
    return w->user_default && requirepass_changed(w->config);
}

static void copy_line(struct rewriting *w, const char *line, size_t n)
{
    size_t indent = 0;
    while (indent < n && blank(line[indent])) {
        indent++;
    }
    const char *at = line + indent;
    size_t at_n = n - indent;
    if (at_n == 0 || *at == '#' || *at == ';') {
        append(w, line, n);
        append(w, "\n", 1);
        return;
    }
    if (*at == '[') {
        const char *end = memchr(at, ']', at_n);
        open_section(w, at + 1, end == NULL ? at_n - 1 : (size_t)(end - at) - 1);
    }
    if (dropped(w)) {
        return;
    }
    append(w, line, indent);
    if (*at == '[') {
        append(w, at, at_n);
        append(w, "\n", 1);
    } else {
        copy_option(w, at, at_n);
    }
    w->section_end = w->n;
}

static void copy_all(struct rewriting *w, const char *text, uint32_t n)
{
    uint32_t at = 0;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        append(w, text, 3);
        at = 3;
    }
    while (at < n) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t line_n = end == NULL ? n - at : (size_t)(end - text) - at;
        copy_line(w, text + at, line_n);
        at += (uint32_t)line_n + (end != NULL);
    }
    close_section(w);
    for (uint32_t i = 0; i < config_options_n; i++) {
        char head[64];
        if ((w->left >> i & 1) == 0) {
            continue;
        }
        w->section = (int)config_options[i].section;
        int head_n = snprintf(head, sizeof head, "\n[%s]\n", config_sections[w->section].name);
        append(w, head, (size_t)head_n);
        w->section_end = w->n;
        close_section(w);
    }
}

/* A new file beside the old one, with its mode, then renamed over it. Its name is of this call
 * alone: several may run. NULL, or what failed. */
static const char *replace(const char *path, const char *text, size_t n)
{
    char fresh[PATH_MAX];
    struct stat about;
    (void)snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    if (stat(path, &about) != 0) {
        return "looking at the file";
    }
    int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0) {
        return "making a new file beside it";
    }
    const char *failed = NULL;
    if (!file_write_all(fd, text, n) || fchmod(fd, about.st_mode & 0777) != 0 || fsync(fd) != 0) {
        failed = "writing the new file";
    }
    if (failed == NULL && rename(fresh, path) != 0) {
        failed = "putting the new file in its place";
    }
    int error = errno;
    (void)close(fd);
    if (failed != NULL) {
        (void)unlink(fresh);
    }
    errno = error;
    return failed;
}

const char *config_rewrite(const struct config *config)
{
    static _Thread_local char why[CONFIG_ERROR_MAX]; /* as in config_set */
    struct rewriting w = {.config = config, .left = config->changed, .section = -1};
    char *text;
    uint32_t n;
    if (config->path[0] == '\0') {
        return "The server is running without a config file";
    }
    int error = config_file_load(config->path, &text, &n);
    if (error != HK_OK) {
        (void)snprintf(why, sizeof why, "%s cannot be read: %s", config->path,
                       error == HK_ERR_IO ? strerror(errno) : hk_err_text(error));
        return why;
    }
    copy_all(&w, text, n);
    const char *failed = "getting memory";
    errno = ENOMEM;
    if (!w.no_memory) {
        failed = replace(config->path, w.out, w.n);
    }
    free(text);
    free(w.out);
    if (failed == NULL) {
        return NULL;
    }
    (void)snprintf(why, sizeof why, "%s: %s failed: %s", config->path, failed, strerror(errno));
    return why;
}
