/* The configuration on hostile text, then CONFIG SET with hostile values.
 *
 * Input: the text of a file; behind the first NUL byte, if there is one, lines "name=value" for
 * CONFIG SET. A key file that is named is looked for, as always. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "server/config.h"

/* What holds for every configuration that was accepted. */
static void check(const struct config *c)
{
    HK_ASSERT(c->id < NODES_MAX && nodeset_has(c->nodes, c->id));
    HK_ASSERT(c->workers >= 1 && c->workers <= WORKERS_MAX);
    HK_ASSERT(c->lease_ms >= 50 && c->lease_ms <= 60000);
    HK_ASSERT(config_margin_us(c) * 4 <= c->lease_ms * 1000);
    HK_ASSERT(c->listens_n >= 1 && c->listens_n <= CONFIG_LISTENS_MAX);
    for (uint32_t i = 0; i < c->listens_n; i++) {
        HK_ASSERT(gate_address_invalid(c->listens[i].text) == NULL);
    }
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        HK_ASSERT(!nodeset_has(c->nodes, i) || nodeset_count(c->nodes) == 1 ||
                  gate_address_invalid(c->peers[i].text) == NULL);
    }
    HK_ASSERT(c->query_bytes_max >= c->bulk_bytes_max);
    HK_ASSERT(c->clients_max >= 1 && c->log_level < LOG_LEVELS && c->io <= LOOP_EPOLL);
    HK_ASSERT(c->users_n <= CONFIG_USERS_MAX);
    bool space = false;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        space = space || c->spaces[i].exists;
    }
    HK_ASSERT(space);
}

static void count(void *context, struct bytes name, struct bytes value)
{
    HK_ASSERT(name.n > 0 && value.n < CONFIG_LISTENS_MAX * GATE_ADDRESS_MAX + 1);
    (*(uint32_t *)context)++;
}

static void set_lines(struct config *config, const uint8_t *at, size_t n)
{
    struct config *before = malloc(sizeof *before);
    HK_ASSERT(before != NULL);
    while (n > 0) {
        const uint8_t *end = memchr(at, '\n', n);
        size_t line = end == NULL ? n : (size_t)(end - at);
        const uint8_t *equals = memchr(at, '=', line);
        uint32_t name = equals == NULL ? (uint32_t)line : (uint32_t)(equals - at);
        uint32_t value = equals == NULL ? 0 : (uint32_t)line - name - 1;
        *before = *config;
        const char *why =
            config_set(config, bytes_of(at, name), bytes_of(at + line - value, value));
        HK_ASSERT(why == NULL || why[0] != '\0');
        /* What was refused changed nothing, but for the room of a password that was not taken. */
        HK_ASSERT(why == NULL || (before->changed == config->changed &&
                                  before->clients_max == config->clients_max &&
                                  before->bulk_bytes_max == config->bulk_bytes_max &&
                                  config_auth_required(before) == config_auth_required(config)));
        check(config);
        at += line + (end != NULL);
        n -= line + (end != NULL);
    }
    free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[CONFIG_ERROR_MAX] = "";
    uint32_t options = 0;
    if (size > 1 << 16) {
        return 0;
    }
    const uint8_t *nul = memchr(data, '\0', size);
    size_t n = nul == NULL ? size : (size_t)(nul - data);
    struct config *config = malloc(sizeof *config);
    uint8_t *text = malloc(n + (n == 0)); /* exactly, so that the sanitizer sees reads past it */
    HK_ASSERT(config != NULL && text != NULL);
    memcpy(text, data, n);
    int result = config_parse(bytes_of(text, (uint32_t)n), NULL, config, error, sizeof error);
    if (result == HK_OK) {
        HK_ASSERT(error[0] == '\0');
        check(config);
        HK_ASSERT(config_get(config, bytes_of("*", 1), count, &options) == options && options > 40);
        if (nul != NULL) {
            set_lines(config, nul + 1, size - n - 1);
        }
    } else {
        HK_ASSERT(result == HK_ERR_INVALID);
        HK_ASSERT(strncmp(error, "configuration:", strlen("configuration:")) == 0);
        HK_ASSERT(strchr(error, '\n') == NULL);
    }
    free(text);
    free(config);
    return 0;
}
