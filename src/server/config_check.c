/* What can be said about a configuration only when all of it was read. */
#include "server/config_reading.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "net/address.h"

/* Whatever the drift, a round of the holder's timers passes before it sees that its lease ended. */
#define MARGIN_LEAST_US 1000u
/* A lease of which more than a quarter is margin serves hardly any time. */
#define MARGIN_SHARE 4u

static uint64_t margin_us(uint64_t lease_ms, uint64_t drift_ppm)
{
    return (lease_ms * 1000u * drift_ppm + 999999u) / 1000000u + MARGIN_LEAST_US;
}

uint32_t config_margin_us(const struct config *config)
{
    return (uint32_t)margin_us(config->lease_ms, config->drift_ppm);
}

static uint32_t line_of(const struct config_reading *r, enum config_section section,
                        const char *name)
{
    const struct config_option *option = config_option_find(section, name);
    HK_ASSERT(option != NULL);
    return r->lines[config_option_index(option)];
}

static bool open_to_others(const struct config *config)
{
    for (uint32_t i = 0; i < config->listens_n; i++) {
        if (!address_is_local(config->listens[i].text)) {
            return true;
        }
    }
    return false;
}

bool config_consistent(const struct config *config, const struct config_option **option_out,
                       const struct config_complaint *complaint)
{
    uint64_t margin = config_margin_us(config);
    if (margin * MARGIN_SHARE > config->lease_ms * UINT64_C(1000)) {
        *option_out = config_option_find(SECTION_CLUSTER, "lease_ms");
        return config_complain(complaint,
                               "lease_ms = %" PRIu32 " is too short for drift_ppm = %" PRIu32
                               ": %" PRIu64
                               " us of it would be margin, more than a quarter; give a "
                               "longer lease or a smaller drift",
                               config->lease_ms, config->drift_ppm, margin);
    }
    if (config->query_bytes_max < config->bulk_bytes_max) {
        *option_out = config_option_find(SECTION_CLIENTS, "query_bytes_max");
        return config_complain(complaint,
                               "query_bytes_max = %" PRIu32
                               " is less than bulk_bytes_max = %" PRIu32
                               ": a command must have room for its largest argument",
                               config->query_bytes_max, config->bulk_bytes_max);
    }
    if (config->guarded && open_to_others(config) && !config_auth_required(config)) {
        *option_out = config_option_find(SECTION_CLIENTS, "listen");
        return config_complain(complaint,
                               "clients of other machines could connect, and user default has no "
                               "password: give requirepass or a section [user default], listen on "
                               "127.0.0.1 only, or say protected = no in [clients]");
    }
    return true;
}

static bool check_nodes(struct config_reading *r)
{
    struct config *config = r->config;
    if (line_of(r, SECTION_NODE, "id") == 0) {
        return config_reading_fail(r, r->section_lines[SECTION_NODE],
                                   "[node] has no id; give the number of this node, 0 to 63, as it "
                                   "stands in [peers]");
    }
    if (r->section_lines[SECTION_PEERS] == 0) {
        config->nodes = nodeset_of(config->id);
        return true;
    }
    if (!nodeset_has(config->nodes, config->id)) {
        return config_reading_fail(
            r, line_of(r, SECTION_NODE, "id"),
            "id = %u is not in [peers]; all nodes of the cluster stand there, "
            "this one too: %u = host:port",
            config->id, config->id);
    }
    if (config->peer_listen.text[0] == '\0') {
        config->peer_listen = config->peers[config->id];
    } else if (strncmp(config->peer_listen.text, "unix:", 5) == 0) {
        return config_reading_fail(r, line_of(r, SECTION_NODE, "peer_listen"),
                                   "peer_listen = %s: peers are reached by host:port",
                                   config->peer_listen.text);
    }
    return true;
}

static bool check_users(struct config_reading *r)
{
    for (uint32_t i = 0; i < r->config->users_n; i++) {
        if (r->config->users[i].passwords_n == 0) {
            return config_reading_fail(r, r->user_lines[i],
                                       "user %s has no password; give a line password = ..., or "
                                       "remove the section",
                                       r->config->users[i].name);
        }
    }
    return true;
}

static bool check_listens(struct config_reading *r)
{
    struct config *config = r->config;
    bool peers = nodeset_count(config->nodes) > 1;
    if (config->listens_n == 0) {
        const struct config_option *option = config_option_find(SECTION_CLIENTS, "listen");
        (void)snprintf(config->listens[config->listens_n++].text, GATE_ADDRESS_MAX, "%s",
                       option->standard);
    }
    for (uint32_t i = 0; i < config->listens_n; i++) {
        if (peers && strcmp(config->listens[i].text, config->peer_listen.text) == 0) {
            return config_reading_fail(
                r, r->listen_lines[i],
                "listen = %s is where this node listens for peers (line %u); "
                "clients need another port",
                config->listens[i].text,
                line_of(r, SECTION_NODE, "peer_listen") != 0
                    ? line_of(r, SECTION_NODE, "peer_listen")
                    : r->peer_lines[config->id]);
        }
    }
    return true;
}

static void default_spaces(struct config_reading *r)
{
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (r->config->spaces[i].exists) {
            return;
        }
    }
    config_space_defaults(&r->config->spaces[0]);
}

/* The line of an option of a space; 0: it has the default. */
static uint32_t space_line(const struct config_reading *r, uint32_t space, const char *name)
{
    const struct config_option *option = config_option_find(SECTION_SPACE, name);
    return r->space_option_lines[space][config_option_index(option)];
}

static bool check_quantum(struct config_reading *r, uint32_t i)
{
    const struct config_space *space = &r->config->spaces[i];
    uint32_t line = space_line(r, i, "quantum_us");
    uint32_t most_line = space_line(r, i, "quantum_most_us");
    if (!space->exists || space->quantum_most_us >= space->quantum_us) {
        return true;
    }
    return config_reading_fail(r, line > most_line ? line : most_line,
                               "quantum_us = %u is more than quantum_most_us = %u",
                               space->quantum_us, space->quantum_most_us);
}

/* Options of another engine than the space's would do nothing. */
static bool check_spaces(struct config_reading *r)
{
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct config_space *space = &r->config->spaces[i];
        for (uint32_t j = 0; j < config_options_n; j++) {
            const struct config_option *option = &config_options[j];
            uint32_t line = r->space_option_lines[i][j];
            if (line != 0 && !config_option_fits(option, space->engine)) {
                return config_reading_fail(
                    r, line, "%s is for engine = %s%s%s; [space %u] has engine = %s", option->name,
                    option->engine, option->also != NULL ? " or " : "",
                    option->also != NULL ? option->also : "", i, space->engine);
            }
        }
        if (!check_quantum(r, i)) {
            return false;
        }
    }
    return true;
}

/* Paths count from the folder of the file, so that a node finds its files wherever it is
 * started. */
static bool place(struct config_reading *r, char path[CONFIG_TEXT_MAX], const char *name)
{
    char placed[CONFIG_TEXT_MAX];
    const char *slash = strrchr(r->config->path, '/');
    if (path[0] == '\0' || path[0] == '/' || slash == NULL) {
        return true;
    }
    int folder = (int)(slash - r->config->path) + 1;
    int n = snprintf(placed, sizeof placed, "%.*s%s", folder, r->config->path, path);
    if (n >= (int)sizeof placed) {
        return config_reading_fail(r, 0, "the path of %s has over %u bytes", name,
                                   CONFIG_TEXT_MAX - 1);
    }
    memcpy(path, placed, (size_t)n + 1);
    return true;
}

static bool place_files(struct config_reading *r)
{
    struct config *config = r->config;
    if (config->state_file[0] == '\0') {
        (void)snprintf(config->state_file, sizeof config->state_file, "horkos-%u.state",
                       config->id);
    }
    return place(r, config->state_file, "state_file") && place(r, config->log_file, "log_file") &&
           place(r, config->key_file, "key_file");
}

#define KEY_DIGITS (2u * CLUSTER_KEY_BYTES)

static bool key_decode(const char *text, size_t n, uint8_t key_out[CLUSTER_KEY_BYTES])
{
    size_t decoded = 0;
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL) {
        n--;
    }
    return n == KEY_DIGITS &&
           sodium_hex2bin(key_out, CLUSTER_KEY_BYTES, text, n, NULL, &decoded, NULL) == 0 &&
           decoded == CLUSTER_KEY_BYTES;
}

static bool key_read(struct config_reading *r, uint32_t line, int fd)
{
    struct config *config = r->config;
    char text[KEY_DIGITS + 16];
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return config_reading_fail(r, line, "key_file %s cannot be read: %s", config->key_file,
                                   strerror(errno));
    }
    if (!S_ISREG(about.st_mode)) {
        return config_reading_fail(r, line, "key_file %s is no file", config->key_file);
    }
    if ((about.st_mode & 077) != 0) {
        return config_reading_fail(r, line,
                                   "key_file %s may be read by others (mode %03o); say: chmod 600 "
                                   "%s",
                                   config->key_file, (unsigned)about.st_mode & 0777u,
                                   config->key_file);
    }
    ssize_t n = read(fd, text, sizeof text);
    bool good = n > 0 && key_decode(text, (size_t)n, config->key);
    sodium_memzero(text, sizeof text);
    return good || config_reading_fail(r, line,
                                       "key_file %s must hold 64 hexadecimal digits and nothing "
                                       "else; make one with: openssl rand -hex 32",
                                       config->key_file);
}

static bool check_key(struct config_reading *r)
{
    struct config *config = r->config;
    uint32_t line = line_of(r, SECTION_CLUSTER, "key_file");
    config->cluster_id = XXH3_64bits(config->cluster, strlen(config->cluster));
    if (config->key_file[0] == '\0' && r->key != NULL) {
        memcpy(config->key, r->key, CLUSTER_KEY_BYTES);
        return true;
    }
    if (config->key_file[0] == '\0') {
        return nodeset_count(config->nodes) < 2 ||
               config_reading_fail(
                   r, r->section_lines[SECTION_CLUSTER],
                   "there are other nodes in [peers], but no key_file in [cluster]; "
                   "make a key with: (umask 077; openssl rand -hex 32 > cluster.key), "
                   "and give the same to all nodes");
    }
    int fd = open(config->key_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return config_reading_fail(r, line, "key_file %s cannot be read: %s", config->key_file,
                                   strerror(errno));
    }
    bool good = key_read(r, line, fd);
    (void)close(fd);
    return good;
}

static bool check_together(struct config_reading *r)
{
    char why[CONFIG_ERROR_MAX / 2] = "";
    const struct config_complaint complaint = {why, sizeof why};
    const struct config_option *option = NULL;
    return config_consistent(r->config, &option, &complaint) ||
           config_reading_fail(r, r->lines[config_option_index(option)], "%s", why);
}

bool config_reading_check(struct config_reading *r)
{
    default_spaces(r);
    return check_spaces(r) && check_nodes(r) && check_users(r) && check_listens(r) &&
           place_files(r) && check_together(r) && check_key(r);
}
