/* Users and their passwords. */
#include "server/config_table.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define HASH_BYTES 32u
static const char hash_prefix[] = "blake2b:";
#define HASH_PREFIX (sizeof hash_prefix - 1)
static const char default_user[] = "default";

struct config_user *config_user_find(struct config *config, const char *name)
{
    for (uint32_t i = 0; i < config->users_n; i++) {
        if (strcmp(config->users[i].name, name) == 0) {
            return &config->users[i];
        }
    }
    return NULL;
}

struct config_user *config_user_add(struct config *config, const char *name)
{
    if (config->users_n == CONFIG_USERS_MAX) {
        return NULL;
    }
    struct config_user *user = &config->users[config->users_n++];
    memset(user, 0, sizeof *user);
    (void)snprintf(user->name, sizeof user->name, "%s", name);
    return user;
}

static void hash(const void *secret, size_t n, uint8_t hash_out[HASH_BYTES])
{
    (void)crypto_generichash(hash_out, HASH_BYTES, secret, n, NULL, 0);
}

bool config_password_parse(const char *text, uint8_t hash_out[32],
                           const struct config_complaint *complaint)
{
    size_t decoded = 0;
    if (text[0] == '\0') {
        return config_complain(complaint, "a password is not empty");
    }
    if (strncmp(text, hash_prefix, HASH_PREFIX) != 0) {
        hash(text, strlen(text), hash_out);
        return true;
    }
    const char *digits = text + HASH_PREFIX;
    if (strlen(digits) != 2 * HASH_BYTES ||
        sodium_hex2bin(hash_out, HASH_BYTES, digits, 2 * HASH_BYTES, NULL, &decoded, NULL) != 0 ||
        decoded != HASH_BYTES) {
        return config_complain(complaint, "behind blake2b: stand the 64 hexadecimal digits of a "
                                          "password's BLAKE2b-256");
    }
    return true;
}

void config_requirepass_get(const struct config *config, char text_out[CONFIG_TEXT_MAX])
{
    char digits[2 * HASH_BYTES + 1];
    text_out[0] = '\0';
    for (uint32_t i = 0; i < config->users_n; i++) {
        const struct config_user *user = &config->users[i];
        if (strcmp(user->name, default_user) == 0 && user->passwords_n > 0) {
            (void)sodium_bin2hex(digits, sizeof digits, user->passwords[0], HASH_BYTES);
            (void)snprintf(text_out, CONFIG_TEXT_MAX, "%s%s", hash_prefix, digits);
        }
    }
}

bool config_requirepass_set(struct config *config, const char *text,
                            const struct config_complaint *complaint)
{
    uint8_t parsed[HASH_BYTES];
    struct config_user *user = config_user_find(config, default_user);
    if (text[0] == '\0') {
        if (user != NULL) {
            user->passwords_n = 0;
        }
        return true;
    }
    if (!config_password_parse(text, parsed, complaint)) {
        return false;
    }
    if (user == NULL) {
        user = config_user_add(config, default_user);
    }
    if (user == NULL) {
        return config_complain(complaint, "there are too many users");
    }
    memcpy(user->passwords[0], parsed, HASH_BYTES);
    user->passwords_n = 1;
    return true;
}

bool config_auth_required(const struct config *config)
{
    for (uint32_t i = 0; i < config->users_n; i++) {
        if (strcmp(config->users[i].name, default_user) == 0) {
            return config->users[i].passwords_n > 0;
        }
    }
    return false;
}

static bool names(const struct config_user *user, struct bytes name)
{
    return bytes_equal(bytes_of(user->name, (uint32_t)strlen(user->name)), name);
}

bool config_auth(const struct config *config, struct bytes user, struct bytes secret)
{
    uint8_t hashed[HASH_BYTES];
    uint32_t good = 0;
    if (user.n == 0) {
        user = bytes_of(default_user, sizeof default_user - 1);
    }
    hash(secret.at, secret.n, hashed);
    /* Every password of every user is compared, so that the time says nothing of who exists. */
    for (uint32_t i = 0; i < config->users_n; i++) {
        uint32_t meant = names(&config->users[i], user);
        for (uint32_t j = 0; j < CONFIG_PASSWORDS_MAX; j++) {
            uint32_t counts = j < config->users[i].passwords_n;
            uint32_t equal =
                sodium_memcmp(config->users[i].passwords[j], hashed, sizeof hashed) == 0;
            good |= meant & counts & equal;
        }
    }
    if (bytes_equal(user, bytes_of(default_user, sizeof default_user - 1)) &&
        !config_auth_required(config)) {
        return true;
    }
    return good != 0;
}
