#include "tools/dev_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "net/address.h"

/* What dev writes unless a --set says otherwise. */
struct line {
    const char *section;
    const char *option;
    char value[64];
};

static bool is_of(const struct dev_set *set, const char *section, const char *option)
{
    return strlen(section) == set->section_n &&
           memcmp(section, set->section, set->section_n) == 0 &&
           (option == NULL ||
            (strlen(option) == set->option_n && memcmp(option, set->option, set->option_n) == 0));
}

static bool is_set(const struct dev_options *options, const char *section, const char *option)
{
    for (uint32_t i = 0; i < options->sets_n; i++) {
        if (is_of(&options->sets[i], section, option)) {
            return true;
        }
    }
    return false;
}

static void write_sets(const struct dev_options *options, const char *section, FILE *to)
{
    for (uint32_t i = 0; i < options->sets_n; i++) {
        const struct dev_set *set = &options->sets[i];
        if (is_of(set, section, NULL)) {
            fprintf(to, "%.*s = %s\n", (int)set->option_n, set->option, set->value);
        }
    }
}

/* Sections in which dev itself writes nothing, in the order in which they were first named. */
static void write_other_sections(const struct dev_options *options, FILE *to)
{
    static const char *const own[] = {"node",    "cluster", "peers",   "clients",
                                      "space 0", "space 1", "space 2", "space 3"};
    for (uint32_t i = 0; i < options->sets_n; i++) {
        const struct dev_set *set = &options->sets[i];
        bool seen = false;
        for (uint32_t k = 0; k < sizeof own / sizeof own[0]; k++) {
            seen = seen || is_of(set, own[k], NULL);
        }
        for (uint32_t k = 0; k < i; k++) {
            const struct dev_set *before = &options->sets[k];
            seen = seen || (before->section_n == set->section_n &&
                            memcmp(before->section, set->section, set->section_n) == 0);
        }
        if (seen) {
            continue;
        }
        char section[256];
        snprintf(section, sizeof section, "%.*s", (int)set->section_n, set->section);
        fprintf(to, "\n[%s]\n", section);
        write_sets(options, section, to);
    }
}

/* Sections with dev's own lines, and what --set adds to them or has in their place. */
static void write_lines(const struct dev_options *options, const struct line *lines, uint32_t n,
                        FILE *to)
{
    const char *section = "";
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(section, lines[i].section) != 0) {
            section = lines[i].section;
            fprintf(to, "\n[%s]\n", section);
            write_sets(options, section, to);
        }
        if (lines[i].value[0] != '\0' && !is_set(options, section, lines[i].option)) {
            fprintf(to, "%s = %s\n", lines[i].option, lines[i].value);
        }
    }
}

void dev_config_write(const struct dev_options *options, const struct dev_ports *ports,
                      uint32_t node, FILE *to)
{
    /* Relative paths begin in the folder of the file. */
    struct line lines[] = {
        {"node", "id", ""},          {"node", "workers", "1"},
        {"node", "spin_us", "0"},    {"node", "state_file", ""},
        {"cluster", "name", "dev"},  {"cluster", "key_file", "cluster.key"},
        {"cluster", "lease_ms", ""}, {"clients", "listen", ""},
    };
    enum { ID = 0, STATE_FILE = 3, LEASE = 6, LISTEN = 7 };
    snprintf(lines[ID].value, sizeof lines[ID].value, "%u", node);
    snprintf(lines[STATE_FILE].value, sizeof lines[STATE_FILE].value, "node-%u.state", node);
    snprintf(lines[LISTEN].value, sizeof lines[LISTEN].value, "127.0.0.1:%u",
             (unsigned)ports->client[node].port);
    if (options->lease_ms != 0) {
        snprintf(lines[LEASE].value, sizeof lines[LEASE].value, "%u", options->lease_ms);
    }
    fprintf(to, "# Node %u of a cluster that `horkos dev` made; a new one replaces this file.\n",
            node);
    write_lines(options, lines, sizeof lines / sizeof lines[0], to);
    fprintf(to, "\n[peers]\n");
    for (uint32_t peer = 1; peer <= ports->nodes; peer++) {
        fprintf(to, "%u = 127.0.0.1:%u\n", peer, (unsigned)ports->peer[peer].port);
    }
    /* Every engine that there is to try, under the number that the documents use. */
    static const struct line spaces[] = {{"space 0", "engine", "hermes"},
                                         {"space 1", "engine", "zeus"},
                                         {"space 2", "engine", "galene"},
                                         {"space 3", "engine", "lotus"}};
    write_lines(options, spaces, sizeof spaces / sizeof spaces[0], to);
    write_other_sections(options, to);
}

bool dev_contact_parse(const char *text, struct dev_contact *contact_out)
{
    struct address_parts parts;
    struct dev_contact contact = {.port = 0};
    if (address_split(text, &parts) != NULL) {
        return false;
    }
    bool is_socket = parts.kind == ADDRESS_UNIX;
    char *to = is_socket ? contact.socket_path : contact.host;
    size_t size = is_socket ? sizeof contact.socket_path : sizeof contact.host;
    if (strlen(parts.host) >= size) {
        return false;
    }
    memcpy(to, parts.host, strlen(parts.host));
    contact.port = (uint16_t)strtoul(parts.port, NULL, 10);
    *contact_out = contact;
    return true;
}

struct search {
    struct dev_contact contact;
    bool found;
};

static int look_at(void *context, const char *section, const char *name, const char *value)
{
    struct search *search = context;
    char *password = search->contact.password;
    bool is_password = (strcmp(section, "clients") == 0 && strcmp(name, "requirepass") == 0) ||
                       (strcmp(section, "user default") == 0 && strcmp(name, "password") == 0);
    /* Of a hash nobody knows the password. */
    if (is_password && password[0] == '\0' && strncmp(value, "blake2b:", 8) != 0) {
        snprintf(password, sizeof search->contact.password, "%s", value);
    }
    if (!search->found && strcmp(section, "clients") == 0 && strcmp(name, "listen") == 0) {
        struct dev_contact contact;
        if (dev_contact_parse(value, &contact)) {
            memcpy(contact.password, password, sizeof contact.password);
            search->contact = contact;
            search->found = true;
        }
    }
    return 1;
}

bool dev_config_contact(const char *path, struct dev_contact *contact_out)
{
    struct search search = {.found = false};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "horkos dev: %s: %s\n", path, strerror(errno));
        return false;
    }
    (void)ini_parse_file(file, look_at, &search);
    fclose(file);
    if (!search.found) {
        fprintf(stderr, "horkos dev: %s names no address for clients ([clients] listen)\n", path);
        return false;
    }
    *contact_out = search.contact;
    return true;
}
