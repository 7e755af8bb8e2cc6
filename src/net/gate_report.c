/* What operators are told, and how seldom. */
#include "net/gate_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REPORT_MAX 1024u

void gate_report(struct gate *gate, const char *format, ...)
{
    char text[REPORT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gate->config.report(gate->config.context, text);
}

/* The first is told after a second, so that what came with it is told together; from then on a
 * minute passes between summaries. */
static void note(struct gate *gate, const char *address, uint64_t now_us)
{
    (void)snprintf(gate->refused_last, sizeof gate->refused_last, "%s", address);
    if (gate->summary_due_us != UINT64_MAX) {
        return;
    }
    gate->summary_due_us = now_us + GATE_SUMMARY_FIRST_US;
    if (gate->summary_last_us != 0 &&
        gate->summary_due_us < gate->summary_last_us + GATE_SUMMARY_US) {
        gate->summary_due_us = gate->summary_last_us + GATE_SUMMARY_US;
    }
}

void gate_refused(struct gate *gate, enum handshake_refusal refusal, const char *address,
                  uint64_t now_us)
{
    gate_count(&gate->count.refused[refusal]);
    gate->refused_since[refusal]++;
    note(gate, address, now_us);
}

void gate_timed_out(struct gate *gate, const char *address, uint64_t now_us)
{
    gate_count(&gate->count.timed_out);
    gate->timed_out_since++;
    note(gate, address, now_us);
}

void gate_crowded(struct gate *gate, const char *address, uint64_t now_us)
{
    gate_count(&gate->count.crowded);
    gate->crowded_since++;
    note(gate, address, now_us);
}

static uint64_t add_part(char *text, size_t size, uint64_t n, const char *what)
{
    size_t used = strlen(text);
    if (n > 0) {
        (void)snprintf(text + used, size - used, "%s%" PRIu64 " %s", used == 0 ? "" : ", ", n,
                       what);
    }
    return n;
}

void gate_summarize(struct gate *gate, uint64_t now_us)
{
    char parts[REPORT_MAX / 2] = "";
    uint64_t n = 0;
    if (now_us < gate->summary_due_us) {
        return;
    }
    for (uint32_t i = 0; i < HANDSHAKE_REFUSALS; i++) {
        n += add_part(parts, sizeof parts, gate->refused_since[i], handshake_refusal_names[i]);
        gate->refused_since[i] = 0;
    }
    n += add_part(parts, sizeof parts, gate->timed_out_since, "silent");
    n += add_part(parts, sizeof parts, gate->crowded_since, "too many at once");
    gate->timed_out_since = 0;
    gate->crowded_since = 0;
    gate->summary_due_us = UINT64_MAX;
    gate->summary_last_us = now_us;
    gate_report(gate,
                "%" PRIu64 " connection%s to the peer port %s refused in the last minute: %s; last "
                "from %s",
                n, n == 1 ? "" : "s", n == 1 ? "was" : "were", parts, gate->refused_last);
}
