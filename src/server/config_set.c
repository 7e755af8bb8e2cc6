/* CONFIG GET and CONFIG SET. */
#include "server/config_table.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "resp/glob.h"

/* Room for "space.15.clients_memory_max". */
#define NAME_MAX_BYTES 64u

/* What Redis's tools ask for and what is always so here. */
static const struct {
    const char *name, *value;
} fixed[] = {
    {"appendonly", "no"}, {"cluster-enabled", "no"},          {"databases", "16"},
    {"save", ""},         {"maxmemory-policy", "noeviction"},
};

struct emission {
    struct bytes pattern;
    config_emit_fn *emit;
    void *context;
    uint32_t n;
};

static void emit(struct emission *e, const char *name, const char *value)
{
    struct bytes text = bytes_of(name, (uint32_t)strlen(name));
    if (resp_glob_match(e->pattern, text, true)) {
        e->emit(e->context, text, bytes_of(value, (uint32_t)strlen(value)));
        e->n++;
    }
}

static void emit_listens(struct emission *e, const struct config *config)
{
    char all[CONFIG_LISTENS_MAX * (GATE_ADDRESS_MAX + 1) + 1];
    size_t n = 0;
    all[0] = '\0';
    for (uint32_t i = 0; i < config->listens_n; i++) {
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i == 0 ? "" : " ",
                              config->listens[i].text);
    }
    emit(e, "clients.listen", all);
}

static void emit_peers(struct emission *e, const struct config *config)
{
    char name[NAME_MAX_BYTES];
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        if (nodeset_has(config->nodes, i) && config->peers[i].text[0] != '\0') {
            (void)snprintf(name, sizeof name, "peers.%u", i);
            emit(e, name, config->peers[i].text);
        }
    }
}

static void emit_space(struct emission *e, const struct config *config,
                       const struct config_option *option)
{
    char name[NAME_MAX_BYTES], value[CONFIG_TEXT_MAX];
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (!config->spaces[i].exists || !config_option_fits(option, config->spaces[i].engine)) {
            continue;
        }
        config_value_get(option, &config->spaces[i], value);
        (void)snprintf(name, sizeof name, "space.%u.%s", i, option->name);
        emit(e, name, value);
        if (i == 0 && option->alias != NULL) {
            emit(e, option->alias, value);
        }
    }
}

static void emit_option(struct emission *e, const struct config *config,
                        const struct config_option *option)
{
    char name[NAME_MAX_BYTES], value[CONFIG_TEXT_MAX];
    switch (option->type) {
    case CONFIG_LISTEN:
        emit_listens(e, config);
        return;
    case CONFIG_PEER:
        emit_peers(e, config);
        return;
    case CONFIG_PASSWORD: /* users' own: nobody's business */
    case CONFIG_TYPES:
        return;
    case CONFIG_REQUIREPASS:
        config_requirepass_get(config, value);
        break;
    case CONFIG_NUMBER:
    case CONFIG_SIGNED:
    case CONFIG_SIZE:
    case CONFIG_SWITCH:
    case CONFIG_CHOICE:
    case CONFIG_WORD:
    case CONFIG_PATH:
    case CONFIG_ADDRESS:
        if (option->section == SECTION_SPACE) {
            emit_space(e, config, option);
            return;
        }
        config_value_get(option, config, value);
        break;
    }
    (void)snprintf(name, sizeof name, "%s.%s", config_sections[option->section].name, option->name);
    emit(e, name, value);
    if (option->alias != NULL) {
        emit(e, option->alias, value);
    }
}

uint32_t config_get(const struct config *config, struct bytes pattern, config_emit_fn *emit_fn,
                    void *context)
{
    struct emission e = {pattern, emit_fn, context, 0};
    if (pattern.n > RESP_GLOB_MAX) {
        return 0; /* no name is that long, and to match it would take long */
    }
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        emit(&e, fixed[i].name, fixed[i].value);
    }
    for (uint32_t i = 0; i < config_options_n; i++) {
        emit_option(&e, config, &config_options[i]);
    }
    return e.n;
}

/* The row that CONFIG SET means, by Redis's name or "section.name". */
static const struct config_option *find_by_name(const char *name)
{
    char full[NAME_MAX_BYTES];
    for (uint32_t i = 0; i < config_options_n; i++) {
        const struct config_option *option = &config_options[i];
        (void)snprintf(full, sizeof full, "%s.%s", config_sections[option->section].name,
                       option->name);
        if (strcasecmp(full, name) == 0 ||
            (option->alias != NULL && strcasecmp(option->alias, name) == 0)) {
            return option;
        }
    }
    return NULL;
}

static bool is_fixed(const char *name)
{
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (strcasecmp(fixed[i].name, name) == 0) {
            return true;
        }
    }
    return strncasecmp(name, "space.", 6) == 0 || strncasecmp(name, "peers.", 6) == 0;
}

/* Bytes that contain no NUL, as a C string. */
static bool text_of(struct bytes bytes, char *out, size_t size)
{
    if (bytes.n >= size || (bytes.n > 0 && memchr(bytes.at, '\0', bytes.n) != NULL)) {
        return false;
    }
    if (bytes.n > 0) {
        memcpy(out, bytes.at, bytes.n);
    }
    out[bytes.n] = '\0';
    return true;
}

/* Sets the option and says whether the whole still makes sense; if not, all is as it was. */
static bool set_option(struct config *config, const struct config_option *option, const char *text,
                       const struct config_complaint *complaint)
{
    const struct config_option *about;
    char before[CONFIG_TEXT_MAX];
    if (option->type == CONFIG_REQUIREPASS) {
        struct config_user *user = config_user_find(config, "default");
        uint32_t passwords_n = user == NULL ? 0 : user->passwords_n;
        if (!config_requirepass_set(config, text, complaint)) {
            return false;
        }
        if (!config_consistent(config, &about, complaint)) {
            /* Only taking passwords away makes it inconsistent, and that leaves them in place. */
            user->passwords_n = passwords_n;
            return false;
        }
        return true;
    }
    config_value_get(option, config, before);
    if (!config_value_set(option, config, text, complaint)) {
        return false;
    }
    if (!config_consistent(config, &about, complaint)) {
        char ignored[CONFIG_TEXT_MAX];
        const struct config_complaint none = {ignored, sizeof ignored};
        return config_value_set(option, config, before, &none) && false;
    }
    return true;
}

const char *config_set(struct config *config, struct bytes name, struct bytes value)
{
    /* One for each thread, as the contract promises; it holds a message and nothing that anybody
     * goes by. */
    static _Thread_local char why[CONFIG_ERROR_MAX];
    const struct config_complaint complaint = {why, sizeof why};
    char name_text[NAME_MAX_BYTES], value_text[CONFIG_TEXT_MAX];
    const struct config_option *option = NULL;
    bool readable = text_of(name, name_text, sizeof name_text);
    if (readable) {
        option = find_by_name(name_text);
    }
    if (option == NULL && (!readable || !is_fixed(name_text))) {
        (void)snprintf(why, sizeof why,
                       "Unknown option or number of arguments for CONFIG SET - '%.128s'",
                       readable ? name_text : "...");
        return why;
    }
    if (option == NULL || !option->runtime) {
        (void)config_complain(&complaint,
                              "%s cannot be changed while the node runs; change the file and start "
                              "the node again",
                              name_text);
        return why;
    }
    if (!text_of(value, value_text, sizeof value_text)) {
        return "the value is too long or holds a NUL byte";
    }
    if (!set_option(config, option, value_text, &complaint)) {
        return why;
    }
    config->changed |= UINT64_C(1) << config_option_index(option);
    return NULL;
}
