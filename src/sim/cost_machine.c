/* Every number has its source in docs/COST_MODEL.md. */
#include "sim/cost_machine.h"

#define NS_PER_S 1e9

/* What does not depend on whether single operations or transactions are carried out. */
#define POLL 186.9
#define FRAME 52.8
#define BYTE 0.23
#define READ 170.1

const struct cost_cpu cost_measured = {
    .poll = POLL,
    .frame = FRAME,
    .byte = BYTE,
    .message = 6.6,
    .read = READ,
    .read_miss = 208.7 - READ,
    .update = 0,
    .step = 134.0,
    .step_miss = 194.1 - 134.0,
};

const struct cost_cpu cost_measured_txns = {
    .poll = POLL,
    .frame = FRAME,
    .byte = BYTE,
    .read = READ,
    .read_miss = 208.7 - READ,
    .txn = 0,
    .txn_op = 103.6,
    .txn_look = 254.0,
    .txn_message = 202.8,
    .row_lock = 439.6,
    .row_index = 453.5,
    .row_read = 302.3,
    .row_write = 518.1,
};

/* The card and the switch that all three machines have; their links differ. */
#define WIRE                                                                                       \
    .card_packets_per_s = 59.3e6, .switch_packets_per_s = 47.4e6, .packet_bytes_max = 4096,        \
    .packet_header_bytes = 34, .inline_bytes = 188, .latency_ns = 860, .fetch_ns = 440,            \
    .switch_ns = 170

const struct cost_machine cost_infiniband = {
    .name = "infiniband",
    .what = "2 x 10 cores, 56 Gb/s, one switch (thesis 4.5)",
    .workers = 40,
    .threads_per_core = 2,
    .window = 50,
    .reads_uniform = 985e6 / (7 * 20),
    .reads_skewed = 4183e6 / (7 * 20),
    .packets_per_core = 40e6,
    .wire = {WIRE, .link_bytes_per_s = 54e9 / 8},
};

const struct cost_machine cost_cloudlab = {
    .name = "cloudlab",
    .what = "8 cores, 40 Gb/s, one switch (thesis 4.5.8)",
    .workers = 16,
    .threads_per_core = 2,
    .window = 50,
    .reads_uniform = 985e6 / (7 * 20) * 2.1 / 2.2,
    .reads_skewed = 4183e6 / (7 * 20) * 2.1 / 2.2,
    .packets_per_core = 40e6 * 2.1 / 2.2,
    .wire = {WIRE, .link_bytes_per_s = 40e9 / 8},
};

const struct cost_machine cost_disaggregated = {
    .name = "disaggregated",
    .what = "24 cores, 100 Gb/s, one switch ([L] 7.1)",
    .workers = 48,
    .threads_per_core = 2,
    .window = 50,
    .reads_uniform = 985e6 / (7 * 20) * 2.8 / 2.2,
    .reads_skewed = 4183e6 / (7 * 20) * 2.8 / 2.2,
    .packets_per_core = 40e6 * 2.8 / 2.2,
    .wire = {WIRE, .link_bytes_per_s = 100e9 / 8},
};

struct cost_machine cost_share(const struct cost_machine *machine, uint32_t workers)
{
    struct cost_machine m = *machine;
    double share = (double)workers / machine->workers;
    m.workers = workers;
    m.wire.link_bytes_per_s *= share;
    m.wire.card_packets_per_s *= share;
    m.wire.switch_packets_per_s *= share;
    return m;
}

struct cost_machine cost_single(const struct cost_machine *machine)
{
    struct cost_machine m = *machine;
    m.workers = 1;
    m.threads_per_core = 1;
    return m;
}

struct cost_cpu cost_scale(const struct cost_machine *machine, const struct cost_cpu *m,
                           bool skewed)
{
    /* A worker at full load finds its whole window in a poll, and all of it reads. */
    double threads = machine->threads_per_core;
    double ours = m->read + m->poll / machine->window;
    double core = threads * NS_PER_S / machine->reads_skewed / ours;
    double miss = threads * (NS_PER_S / machine->reads_uniform - NS_PER_S / machine->reads_skewed);
    return (struct cost_cpu){
        .poll = core * m->poll,
        .frame = core * m->frame,
        .byte = core * m->byte,
        .message = core * m->message,
        .read = core * m->read,
        .read_miss = skewed ? 0 : miss,
        .update = core * m->update,
        .step = core * m->step,
        .step_miss = skewed ? 0 : miss * m->step_miss / m->read_miss,
        .packet = threads * NS_PER_S / machine->packets_per_core,
        .txn = core * m->txn,
        .txn_op = core * m->txn_op,
        .txn_look = core * m->txn_look,
        .txn_message = core * m->txn_message,
        .row_lock = core * m->row_lock,
        .row_index = core * m->row_index,
        .row_read = core * m->row_read,
        .row_write = core * m->row_write,
    };
}
