#include <inttypes.h>

#include "sim/setup.h"

static void print_ms(struct text *to, const char *name, uint64_t us)
{
    text_add(to, " %s %" PRIu64 ".%03" PRIu64 " ms", name, us / 1000, us % 1000);
}

static void print_set(struct text *to, nodeset set)
{
    text_add(to, "{");
    for (nodeset rest = set; rest != 0; rest &= rest - 1) {
        text_add(to, "%s%u", rest == set ? "" : " ", nodeset_first(rest));
    }
    text_add(to, "}");
}

void fault_print(const struct fault *f, struct text *to)
{
    text_add(to, "%" PRIu64 ".%03" PRIu64 " ms: %s", f->at_us / 1000, f->at_us % 1000,
             sim_fault_names[f->kind]);
    if (f->cue != CUE_NONE) {
        text_add(to, " (waits for: %s)", fault_cue_names[f->cue]);
    }
    switch ((uint32_t)f->kind) {
    case SIM_FAULT_RESIZE:
        text_add(to, ": add ");
        print_set(to, f->adds);
        text_add(to, ", remove ");
        print_set(to, f->removes);
        return;
    case SIM_FAULT_MAJORITY:
        text_add(to, ", but for ");
        print_set(to, f->side);
        break;
    case SIM_FAULT_BLACKOUT:
        break;
    case SIM_FAULT_CLOCK:
    case SIM_FAULT_DRIFT:
        text_add(to, ", the clock of node %u steps", f->node);
        print_ms(to, " by", f->step_us);
        return;
    case SIM_FAULT_STORM:
        text_add(to, ", %u of 1000 frames lost", f->permille);
        break;
    case SIM_FAULT_ONEWAY:
        text_add(to, f->outwards ? ", from node %u to " : ", to node %u from ", f->node);
        print_set(to, f->side);
        break;
    case SIM_FAULT_PARTITION:
        text_add(to, ", against the rest: ");
        print_set(to, f->side);
        break;
    case SIM_FAULT_BRIDGE:
        text_add(to, ", between node %u and node %u", f->node, f->other);
        break;
    case SIM_FAULT_CRASH:
        text_add(to, " of node %u", f->node);
        if (f->mid) {
            text_add(to, " in mid-operation, %u of 1000 outputs leave", f->permille);
        }
        text_add(to, "%s", f->reboot ? ", its clock starts anew" : "");
        break;
    case SIM_FAULT_PAUSE:
    case SIM_FAULT_ZOMBIE:
        text_add(to, " of node %u%s", f->node, f->mid ? " in mid-operation" : "");
        if (f->deaf) {
            text_add(to, ", which then hears only ");
            print_set(to, f->side);
        }
        break;
    case SIM_FAULT_STALL:
        text_add(to, " of node %u, worker %u%s", f->node, f->worker,
                 f->within  ? ", in the middle of a poll"
                 : f->stale ? ", after it read the clock"
                            : "");
        break;
    case SIM_FAULT_SLOW:
        text_add(to, ", node %u by a factor of %u", f->node, f->factor);
        break;
    default:
        text_add(to, " of node %u", f->node);
    }
    text_add(to, "%s", f->spares_old ? ", but not for old processes" : "");
    print_ms(to, ", for", f->lasts_us);
}

static void print_weather(const struct weather *w, struct text *to)
{
    text_add(to, "  weather (ppm): loss %u, duplicate %u, reorder %u, corrupt %u, spike %u;",
             w->loss_ppm, w->duplicate_ppm, w->reorder_ppm, w->corrupt_ppm, w->spike_ppm);
    text_add(to, " us: base %" PRIu64 ", jitter %" PRIu64 ", spike %" PRIu64 ", late %" PRIu64 "\n",
             w->base_us, w->jitter_us, w->spike_us, w->late_us);
}

static void print_links(const struct setup *s, struct text *to)
{
    text_add(to, "  slowness of links:");
    for (uint32_t from = 0; from < s->machines; from++) {
        text_add(to, from == 0 ? " " : ", ");
        for (uint32_t target = 0; target < s->machines; target++) {
            text_add(to, from == target ? " -" : " %u", s->weather.slowness[from][target]);
        }
    }
    text_add(to, "\n");
}

static void print_clients(const struct setup *s, struct text *to)
{
    text_add(to, "  clients: %u, %u rounds of %u, window %u, think %" PRIu64 " us; ", s->clients,
             s->rounds_n, s->round_ops, s->window_max, s->think_us);
    text_add(to, "%u keys (%u registers, ", s->keys, s->registers);
    text_add(to, "%u counters), %u fillers; of 1000: hot %u, private %u, extra %u; values %u\n",
             s->counters, s->filler_keys, s->skew_permille, s->private_permille, s->extra_permille,
             s->value_profile);
    if (s->memory_max != 0) {
        text_add(to, "  memory %" PRIu64 " bytes\n", s->memory_max);
    }
    const struct mix *m = &s->mix;
    text_add(to, "  mix: read %u, write %u, delete %u, delete-if %u, set-if %u, set-absent %u, ",
             m->read, m->write, m->erase, m->erase_if, m->set_if, m->set_absent);
    text_add(to, "add %u, getset %u\n", m->add, m->getset);
}

static void print_hot(const struct setup *s, struct text *to)
{
    const struct hot_config *h = &s->hot;
    text_add(to, "  hot set%s%s: %u keys, ", h->off ? " (off)" : "",
             h->exclusive ? " (exclusive)" : "", h->cache_keys);
    print_ms(to, "epoch", h->epoch_us);
    print_ms(to, "favour", s->favour_us);
    text_add(to, " sample %u misses %u\n", h->sample, h->misses_max);
}

static void print_tables(const struct setup *s, struct text *to)
{
    const struct lotus_config *l = &s->lotus;
    text_add(to, "%s%s%s%s%s%s, hints %u, tries %u,", lock_policy_names[l->lock.policy],
             s->trade_tag ? ", one tag" : "", l->one_at_a_time ? ", one item at a time" : "",
             l->one_trip_off ? ", no single trips" : "", l->hints_off ? ", no hints" : "",
             l->across ? ", batches across transactions" : "", l->hints_max, l->tries_max);
    print_ms(to, "lease", l->lease_us);
    print_ms(to, "grace", l->grace_us);
    if (l->near_max != 0) {
        text_add(to, ", near %" PRIu64, l->near_max);
    }
    for (uint32_t i = 0; i < s->machines; i++) {
        if (s->roles[i] == NODE_ROLE_COMPUTE) {
            text_add(to, ", node %u computes", i);
        }
    }
    text_add(to, "\n");
}

static void print_traders(const struct setup *s, struct text *to)
{
    text_add(to, "  traders: %u, rounds of %u, window %u, %u keys, %u accounts; ", s->traders,
             s->round_deals, s->trade_window, s->traded, s->accounts);
    if ((s->engine->traits & ENGINE_TABLES) != 0) {
        print_tables(s, to);
        return;
    }
    text_add(to, "degree %u, records %u,", s->degree, s->owned.busy_max);
    print_ms(to, "quantum", s->owned.quantum_us);
    print_ms(to, "grace", s->owned.grace_us);
    print_ms(to, "walk", s->owned.walk_us);
    text_add(to, "\n");
}

void setup_print(const struct setup *s, struct text *to)
{
    text_add(to, "seed %" PRIu64 ": %u nodes", s->seed, s->nodes);
    if (s->machines > s->nodes) {
        text_add(to, " and %u spare ones", s->machines - s->nodes);
    }
    for (uint32_t i = 0; i < s->machines; i++) {
        text_add(to, i == 0 ? " of %u" : "/%u", s->workers_of[i]);
    }
    text_add(to, " workers%s%s%s%s\n ", s->o3 ? ", O3" : "", s->async ? ", asynchronous reads" : "",
             s->gentle ? ", gentle" : "", s->blackout ? ", a loss of all power at the end" : "");
    print_ms(to, "lease", s->lease_us);
    print_ms(to, "margin", s->margin_us);
    print_ms(to, "heartbeat", s->heartbeat_us);
    print_ms(to, "suspect", s->suspect_us);
    print_ms(to, "mlt", s->mlt_us);
    print_ms(to, "grace", s->grace_us);
    print_ms(to, "answer", s->answer_us);
    text_add(to, "\n ");
    print_ms(to, "no_lease", s->no_lease_us);
    print_ms(to, "parked", s->parked_us);
    print_ms(to, "sweep", s->sweep_us);
    text_add(to, " max_events %u calls %u flows %u chunk %u tries %u cids %u gap %" PRIu64 " us\n",
             s->max_events, s->calls_max, s->flows_max, s->chunk_bytes, s->rmw_tries_max, s->cids,
             s->poll_gap_us);
    print_weather(&s->weather, to);
    print_links(s, to);
    text_add(to, "  clocks (ppm, wall ms):");
    for (uint32_t i = 0; i < s->machines; i++) {
        text_add(to, " %d/%" PRId64, s->clocks[i].rate_ppm, s->clocks[i].wall_ms);
    }
    text_add(to, "\n");
    if (s->versions) {
        text_add(to, "  versions of the frames:");
        for (uint32_t i = 0; i < s->machines; i++) {
            text_add(to, " %u", s->version_max[i]);
        }
        text_add(to, "\n");
    }
    print_clients(s, to);
    if ((s->engine->traits & ENGINE_HOMED) != 0) {
        print_hot(s, to);
    }
    if (s->traders > 0) {
        print_traders(s, to);
    }
    for (uint32_t i = 0; i < s->plan_n; i++) {
        text_add(to, "  fault %u at ", i);
        fault_print(&s->plan[i], to);
        text_add(to, "%s\n", s->plan[i].off ? " (left out)" : "");
    }
    text_add(to, "  faults end at");
    print_ms(to, "", s->horizon_us);
    text_add(to, "\n");
}
