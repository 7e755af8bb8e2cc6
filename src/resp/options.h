/* Options that several commands on keys share: deadlines of SET, GETEX and EXPIRE. */
#ifndef HORKOS_RESP_OPTIONS_H
#define HORKOS_RESP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "resp/internal.h"

enum deadline_from { DEADLINE_RELATIVE, DEADLINE_ABSOLUTE };
enum deadline_unit { DEADLINE_SECONDS, DEADLINE_MS };

/* What a time that a client gave comes to. */
enum deadline_read {
    DEADLINE_OK,
    DEADLINE_NO_INTEGER, /* -ERR value is not an integer or out of range */
    DEADLINE_INVALID,    /* -ERR invalid expire time in '...' command */
};

/* A deadline in ms since 1970, of SET and its kin: past 1970 and within 63 bits. */
enum deadline_read deadline_read(const struct resp_conn *conn, struct bytes text,
                                 enum deadline_from from, enum deadline_unit unit,
                                 int64_t *deadline_ms_out);
/* The same for EXPIRE and its kin, where any time of the past is allowed. */
enum deadline_read deadline_read_expire(const struct resp_conn *conn, struct bytes text,
                                        enum deadline_from from, enum deadline_unit unit,
                                        int64_t *deadline_ms_out);
/* Writes the error that belongs to `read`, which is not DEADLINE_OK. name: of the command. */
void deadline_error(struct resp_out *out, enum deadline_read read, const char *name);

/* The options of SET behind its value, and those of GETEX behind its key. */
struct set_options {
    uint16_t flags; /* enum op_flag: NX, XX, IFEQ, GET, KEEPTTL; DEADLINE if `deadline` is used */
    bool persist;
    enum deadline_from from;
    enum deadline_unit unit;
    struct bytes deadline;
    struct bytes ifeq;
};

enum set_options_of { OPTIONS_SET, OPTIONS_GETEX };
/* False, after writing the syntax error. */
bool set_options_read(struct resp_conn *conn, uint32_t first, enum set_options_of of,
                      struct set_options *options_out) __attribute__((warn_unused_result));

/* NX, XX, GT, LT behind EXPIRE's time, as flags of OP_EXPIRE. False, after writing the error. */
bool expire_options_read(struct resp_conn *conn, uint32_t first, uint16_t *flags_out)
    __attribute__((warn_unused_result));

/* Wall clock in ms since 1970. */
int64_t conn_wall_ms(const struct resp_conn *conn);

#endif
