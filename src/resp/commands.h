/* What the files that serve commands beside those on keys share. */
#ifndef HORKOS_RESP_COMMANDS_H
#define HORKOS_RESP_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "resp/internal.h"

/* The most bytes of a client's word that an error repeats, as in Redis. */
#define COMMAND_WORD_MAX 128u

/* The part of a client's word that an error may repeat: cut after max bytes and before the first
 * NUL, as printf of C strings does it in Redis. */
struct bytes command_printable(struct bytes word, uint32_t max);
/* Copies bytes to a C string; false if they do not fit or hold a NUL. */
bool command_text(struct bytes bytes, char *text_out, uint32_t capacity);
/* Whether a name for connections or libraries is one; writes the error if not. `what`: "Client
 * names", as the error begins. */
bool command_name_fits(struct resp_conn *conn, struct bytes name, const char *what);
/* Stores a name for which command_name_fits was true. */
void command_set_name(char name_out[RESP_NAME_MAX + 1], struct bytes name);
/* What CLIENT LIST shows of this connection changed. */
void command_changed(struct resp_conn *conn);
bool command_auth_required(const struct resp_conn *conn);
/* Bit n: space n exists. */
uint32_t command_spaces(const struct resp_conn *conn);
/* The name of a space's engine; never NULL. */
const char *command_engine(const struct resp_conn *conn, uint32_t space);

/* The most words that a command looks up one by one in a single go. */
#define COMMAND_WORDS_MAX 1024u
/* Whether the arguments from `first` on are no more than that; writes the error if not. `what`:
 * "patterns", as the error ends. */
bool command_words_fit(struct resp_conn *conn, uint32_t first, const char *what);

/* HELP: "NAME <subcommand> ...", then the lines, then HELP itself. NULL ends the lines. */
void command_help(struct resp_conn *conn, const char *const *lines);
/* A reply of text that is gathered first: takes *text, which resp_out_init made, and frees it. */
void command_text_reply(struct resp_conn *conn, struct resp_out *text);

/* For commands that look at the store themselves, so that the node cannot refuse: HK_OK, or why
 * what this node holds says nothing now; and the same as a question that writes the error. */
int command_serving(const struct resp_conn *conn);
bool command_may_look(struct resp_conn *conn);

#endif
