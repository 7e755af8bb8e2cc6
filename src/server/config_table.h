/* Inside of config: the table of options, one row each, and what works on a row. Everything else
 * about the configuration (reading, CONFIG GET and SET, the documentation) follows the table. */
#ifndef HORKOS_SERVER_CONFIG_TABLE_H
#define HORKOS_SERVER_CONFIG_TABLE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/config.h"

enum config_section {
    SECTION_NODE,
    SECTION_CLUSTER,
    SECTION_PEERS,
    SECTION_CLIENTS,
    SECTION_USER,
    SECTION_SPACE,
    SECTIONS
};

struct config_section_info {
    const char *name;  /* as it stands in the file, without the parameter */
    const char *title; /* with it: "space N" */
    const char *help;
    bool parameter;
};
extern const struct config_section_info config_sections[SECTIONS];

enum config_type {
    CONFIG_NUMBER,      /* of `bytes` bytes without sign */
    CONFIG_SIGNED,      /* int64_t; min and max are int64_t in disguise */
    CONFIG_SIZE,        /* bytes: a number with or without kb, mb, gb */
    CONFIG_SWITCH,      /* yes or no */
    CONFIG_CHOICE,      /* an enum: one of names, stored as uint32_t */
    CONFIG_WORD,        /* letters, digits, - and _; one of names if there are any */
    CONFIG_PATH,        /* char[CONFIG_TEXT_MAX] */
    CONFIG_ADDRESS,     /* struct gate_address */
    CONFIG_LISTEN,      /* ... of which there may be several */
    CONFIG_PEER,        /* the option's name is a node's id */
    CONFIG_PASSWORD,    /* one more password of the section's user */
    CONFIG_REQUIREPASS, /* the password of user "default" */
    CONFIG_TYPES
};

struct config_option {
    enum config_section section;
    const char *name;
    enum config_type type;
    size_t offset; /* in struct config, or in struct config_space for [space N] */
    uint32_t bytes;
    const char *standard;     /* the default, as text of the file; NULL: there is none */
    const char *standard_doc; /* what the documentation says instead; NULL: standard itself */
    uint64_t min, max;        /* of numbers and sizes */
    const char *unit;         /* of numbers, plural; NULL: a plain number */
    const char *const *names;
    uint32_t names_n;
    const char *engine; /* of [space N]: it means something to this engine only; NULL: to all */
    const char *also;   /* ... and to this one */
    bool runtime;       /* CONFIG SET may change it */
    const char *alias;  /* Redis's name; NULL: none */
    const char *help;
};

#define CONFIG_OPTIONS_MAX 64u /* bits of config.changed */
extern const struct config_option config_options[];
extern const uint32_t config_options_n;

/* What stands between a section's brackets, n bytes: its section, or SECTIONS if there is none of
 * this name. *parameter_out: where its parameter begins; n if it has none. */
enum config_section config_section_find(const char *name, size_t n, size_t *parameter_out);
/* The row of this section and name, or NULL. For [peers] any name finds the row. */
const struct config_option *config_option_find(enum config_section section, const char *name);
uint32_t config_option_index(const struct config_option *option);
/* Whether an option of [space N] means something to this engine. */
bool config_option_fits(const struct config_option *option, const char *engine);

/* Where messages about a value go. */
struct config_complaint {
    char *at;
    uint32_t size;
};
/* Writes a message and answers false. */
bool config_complain(const struct config_complaint *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Scalars only (CONFIG_NUMBER to CONFIG_ADDRESS). base: the struct that offset counts from. False:
 * the complaint says what is wrong and what would be right; nothing changed. */
bool config_value_set(const struct config_option *option, void *base, const char *text,
                      const struct config_complaint *complaint);
/* The value as text that config_value_set would take. */
void config_value_get(const struct config_option *option, const void *base,
                      char text_out[CONFIG_TEXT_MAX]);
/* "50 to 60000 milliseconds", "yes or no", ...: what the option takes. */
void config_value_describe(const struct config_option *option, char text_out[CONFIG_TEXT_MAX]);
/* A number without sign, leading zeros or blanks. */
bool config_number_parse(const char *text, uint64_t *number_out);

/* Fills in every default; a [space N] when it is opened. */
void config_defaults(struct config *config);
void config_space_defaults(struct config_space *space);

/* A password as it stands in the file, to its hash. */
bool config_password_parse(const char *text, uint8_t hash_out[32],
                           const struct config_complaint *complaint);
/* The user of this name or NULL; user_add adds it (NULL: CONFIG_USERS_MAX). */
struct config_user *config_user_find(struct config *config, const char *name);
struct config_user *config_user_add(struct config *config, const char *name);
/* "blake2b:<64 hex digits>", "" without a password: user "default"'s first. */
void config_requirepass_get(const struct config *config, char text_out[CONFIG_TEXT_MAX]);
/* Replaces all passwords of user "default"; "" takes them away. */
bool config_requirepass_set(struct config *config, const char *text,
                            const struct config_complaint *complaint);

/* What one option alone cannot say. NULL, or the message; option_out: whose line it is about (NULL:
 * none's). */
bool config_consistent(const struct config *config, const struct config_option **option_out,
                       const struct config_complaint *complaint);

/* Reads lines of a file as inih will see them. */
#define CONFIG_FILE_MAX (1024u * 1024u)
/* HK_ERR_IO: errno; HK_ERR_TOOBIG, HK_ERR_NOMEM. text_out is malloced, and ends with a NUL that n
 * does not count. */
int config_file_load(const char *path, char **text_out, uint32_t *n_out);

#endif
