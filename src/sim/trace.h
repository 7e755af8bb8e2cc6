/* What happened in a run: a hash of everything, always; and on demand lines for people, the same
 * for each run of a seed. */
#ifndef HORKOS_SIM_TRACE_H
#define HORKOS_SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "view/view.h"
#include "wire/frame.h"

struct world;

struct trace {
    FILE *to; /* NULL: only the hash */
    uint64_t hash;
    struct hash_secret secret;
};

void trace_init(struct trace *trace, FILE *to);
/* Something happened that value stands for. */
void trace_note(struct trace *trace, uint64_t value);
void trace_note_bytes(struct trace *trace, struct bytes bytes);

static inline bool trace_wanted(const struct trace *trace)
{
    return trace->to != NULL;
}

/* A line that starts with step and virtual time; only if trace_wanted. */
void trace_line(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What a frame says, message by message, and what becomes of it. */
void trace_frame(struct world *world, const char *what, const struct frame *frame);
/* "INV", ...: the hermes engine's and the node's messages; "?": another engine's. */
const char *trace_msg_name(const struct world *world, uint8_t kind);
void trace_view(struct world *world, uint8_t node, const struct view *view);

#endif
