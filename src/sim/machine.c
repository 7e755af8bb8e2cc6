#include "sim/machine.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "engine/homes/homes.h"
#include "sim/redis.h"
#include "sim/world.h"

/* A run that polls more often than this is stuck in a loop that takes no time. */
#define POLLS_MAX 20000000u
/* Nor may a worker have so many polls with something to do, but neither input nor output. */
#define SPINS_MAX 5000u
#define WALL_START_MS UINT64_C(1700000000000)

uint64_t machine_clock(const struct machine *m, uint64_t virtual_us)
{
    int64_t rate_ppm = m->world->setup.clocks[m->id].rate_ppm;
    int64_t drift_us = (int64_t)virtual_us * rate_ppm / 1000000;
    return (uint64_t)(m->clock_offset_us + (int64_t)virtual_us + drift_us);
}

uint64_t machine_virtual(const struct machine *m, uint64_t local_us)
{
    int64_t rate_ppm = m->world->setup.clocks[m->id].rate_ppm;
    if (local_us >= UINT64_C(1) << 50) {
        return NEVER;
    }
    int64_t since_us = (int64_t)local_us - m->clock_offset_us;
    if (since_us <= 0) {
        return 0;
    }
    uint64_t at_us = (uint64_t)(since_us * 1000000 / (1000000 + rate_ppm));
    while (machine_clock(m, at_us) < local_us) {
        at_us++;
    }
    while (at_us > 0 && machine_clock(m, at_us - 1) >= local_us) {
        at_us--;
    }
    return at_us;
}

/* ---- What the node sees of the world ---- */

static struct machine *machine_of(void *context)
{
    struct process *process = context;
    return process->machine;
}

static bool env_receive(void *context, uint32_t worker, struct bytes *frame_out)
{
    struct machine *m = machine_of(context);
    struct actor *a = &m->actors[worker];
    if (a->held_until_us > m->world->now_us && a->took && !a->busy) {
        world_hold_up(m->world, m, worker);
    }
    parcel_destroy(a->given);
    a->given = NULL;
    struct parcel *parcel = a->inbox_first;
    if (parcel == NULL || parcel->arrived_step > m->cutoff_step) {
        return false;
    }
    a->inbox_first = parcel->next;
    if (a->inbox_first == NULL) {
        a->inbox_last = &a->inbox_first;
    }
    a->inbox_n--;
    a->given = parcel;
    a->took = true;
    *frame_out = bytes_of(parcel->bytes, parcel->n);
    if (trace_wanted(&m->world->trace)) {
        struct frame frame;
        enum frame_drop drop =
            frame_open(*frame_out, m->world->setup.seed, m->id, m->nonce, &frame);
        if (drop == FRAME_DROP_NONE) {
            trace_frame(m->world, "received", &frame);
        } else {
            trace_line(m->world, "node %u receives a frame that is refused: %s", m->id,
                       frame_drop_names[drop]);
        }
    }
    return true;
}

static struct output *add_output(struct machine *m)
{
    if (m->outputs_n == m->outputs_capacity) {
        m->outputs_capacity = m->outputs_capacity == 0 ? 64 : 2 * m->outputs_capacity;
        m->outputs = realloc(m->outputs, m->outputs_capacity * sizeof *m->outputs);
        HK_ASSERT(m->outputs != NULL);
    }
    struct output *output = &m->outputs[m->outputs_n++];
    *output = (struct output){.op = NO_OP};
    return output;
}

static void env_send(void *context, uint32_t worker, uint8_t to, struct bytes frame)
{
    struct machine *m = machine_of(context);
    (void)worker;
    if (to >= m->world->setup.machines || to == m->id) {
        world_violation(m->world, "node %u sends to node %u, which does not exist", m->id, to);
        return;
    }
    struct output *output = add_output(m);
    output->parcel = parcel_create(frame);
    output->to = to;
}

static bool env_request(void *context, uint32_t worker, struct request *request_out)
{
    struct machine *m = machine_of(context);
    bool took = crowd_request(m, worker, request_out) || traders_request(m, worker, request_out);
    m->actors[worker].took = m->actors[worker].took || took;
    return took;
}

static void env_reply(void *context, uint32_t worker, const struct reply *reply)
{
    struct machine *m = machine_of(context);
    if (m->mute) {
        return;
    }
    if ((reply->tag & DEAL_TAG) != 0) {
        traders_reply(m, worker, reply);
    } else {
        crowd_reply(m, worker, reply);
    }
    struct output *output = add_output(m);
    output->op = (uint32_t)reply->tag;
}

static void env_wake(void *context, uint32_t worker)
{
    struct machine *m = machine_of(context);
    machine_notice(m, worker);
}

uint64_t machine_wall_ms(const struct machine *m)
{
    const struct setup_clock *clock = &m->world->setup.clocks[m->id];
    int64_t off_ms = clock->wall_ms;
    if (m->world->now_us >= clock->jump_at_us) {
        off_ms += clock->jump_ms;
    }
    return WALL_START_MS + m->world->now_us / 1000 + (uint64_t)off_ms;
}

static uint64_t env_wall_ms(void *context)
{
    return machine_wall_ms(machine_of(context));
}

static uint64_t host_wall_us(void *context)
{
    return 1000 * env_wall_ms(context);
}

/* What both ends of a connection have agreed upon. A process that is taken over by an older one
 * still receives what was sent before. */
static uint16_t env_version(void *context, uint32_t worker, uint8_t to)
{
    const struct machine *m = machine_of(context);
    uint16_t other = m->world->machines[to].version_max;
    (void)worker;
    return other < m->version_max ? other : m->version_max;
}

static void env_persist(void *context, uint64_t generation, uint32_t epoch)
{
    struct machine *m = machine_of(context);
    m->kept_generation = generation;
    m->kept_epoch = epoch;
    trace_note(&m->world->trace, generation ^ epoch);
    trace_line(m->world, "node %u keeps generation %" PRIx64 ", epoch %" PRIu32, m->id, generation,
               epoch);
}

/* ---- A process begins and ends ---- */

bool machine_is_zombie(const struct machine *m)
{
    return m->place >= SIM_NODES_MAX;
}

void machine_init(struct machine *m, struct world *world, uint8_t id, uint8_t place)
{
    *m = (struct machine){
        .world = world,
        .id = id,
        .place = place,
        .clock_offset_us = world->setup.clocks[id].offset_us,
        .slow = 1,
        .workers = world->setup.workers_of[id],
        .version_max = world->setup.version_max[id],
    };
    for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++) {
        struct actor *a = &m->actors[i];
        a->inbox_last = &a->inbox_first;
        a->queue_first = a->queue_last = a->given_op = NO_OP;
        a->poll_at_us = NEVER;
    }
}

/* The first n of the outputs leave the process; the others never will. */
static void release_outputs(struct machine *m, size_t n)
{
    for (size_t i = 0; i < m->outputs_n; i++) {
        struct output output = m->outputs[i];
        if (i >= n) {
            parcel_destroy(output.parcel);
        } else if (output.parcel != NULL) {
            network_send(m->world, m->id, machine_is_zombie(m), output.to, output.parcel);
        } else if ((output.op & DEAL_TAG) != 0) {
            traders_answered(m->world, output.op & ~DEAL_TAG);
        } else {
            crowd_answered(m->world, output.op);
        }
    }
    m->outputs_n = 0;
    m->held = false;
}

static void clear_actor(struct actor *a)
{
    while (a->inbox_first != NULL) {
        struct parcel *next = a->inbox_first->next;
        parcel_destroy(a->inbox_first);
        a->inbox_first = next;
    }
    a->inbox_last = &a->inbox_first;
    a->inbox_n = 0;
    parcel_destroy(a->given);
    a->given = NULL;
    a->closing_n = 0;
    a->poll_at_us = NEVER;
    a->asleep = false;
    a->stale_us = 0;
    a->held_until_us = 0;
    a->spins = 0;
}

static void configure_engine(struct machine *m)
{
    const struct setup *s = &m->world->setup;
    union engines_config *config = &m->process->engine;
    const struct engines_options options = {.mlt_us = m->world->config->lanes ? 16 * s->lease_us
                                                                              : s->mlt_us,
                                            .grace_us = s->grace_us,
                                            .ack_to_all = s->o3,
                                            .degree = s->degree,
                                            .lotus = s->lotus};
    engines_configure(s->engine, &options, config);
    m->process->ops = *s->engine;
    if (m->world->config->lanes) {
        m->process->ops.port_needs |= PORT_ORDERED;
    }
    if (s->engine == &hermes_ops) {
        config->hermes.rules_off = m->world->config->engine_rules_off;
    } else if (s->engine == &craq_ops) {
        config->craq.rules_off = m->world->config->engine_rules_off;
    } else if (s->engine == &zab_ops) {
        config->zab.rules_off = m->world->config->engine_rules_off;
    } else if (s->engine == &galene_ops) {
        config->galene.rules_off = m->world->config->engine_rules_off;
    } else if (s->engine == &zeus_ops) {
        config->zeus.own.rules_off = m->world->config->engine_rules_off;
        config->zeus.commit.rules_off = m->world->config->engine_rules_off >> OWN_RULES;
    } else if (s->engine == &lotus_ops) {
        config->lotus.rules_off = m->world->config->engine_rules_off;
        config->lotus.lock.rules_off =
            m->world->config->engine_rules_off >> (LOTUS_RULES + HOMES_RULES);
    }
}

static void describe_node(struct machine *m, struct node_config *config)
{
    const struct setup *s = &m->world->setup;
    const struct sim_config *sim = m->world->config;
    struct random *chance = &m->world->chance_machines;
    configure_engine(m);
    *config = (struct node_config){
        .self = m->id,
        .role = s->roles[m->id],
        .workers = m->workers,
        .version_max = m->version_max,
        .cluster = s->seed,
        .seed = random_next(chance),
        .calls_max = s->calls_max,
        .flows_max = s->flows_max,
        .sessions_max =
            s->clients + SIM_NODES_MAX + 2 + (s->traders > 0 ? s->traders + SIM_NODES_MAX : 0),
        .session_calls_max = WINDOW_MAX,
        .parked_us = s->parked_us,
        .answer_us = s->answer_us,
        .no_lease_us = s->no_lease_us,
        .rmw_tries_max = s->rmw_tries_max,
        .chunk_bytes = s->chunk_bytes,
        .sweep_us = s->sweep_us,
        .rules_off = sim->node_rules_off,
        .view_rules_off = sim->view_rules_off,
    };
    config->view = (struct view_config){
        .self = m->id,
        .nonce = m->nonce,
        .configured = m->world->operator.wanted | nodeset_of(m->id),
        .bootstrap = m->bootstrap,
        .lease_us = (uint32_t)s->lease_us,
        .margin_us = (uint32_t)s->margin_us,
        .heartbeat_us = (uint32_t)s->heartbeat_us,
        .suspect_us = (uint32_t)s->suspect_us,
        .cids_per_member = s->cids,
        .kept_generation = m->kept_generation,
        .kept_epoch = m->kept_epoch,
        .seed = random_next(chance),
    };
    config->spaces[0] = (struct space_config){
        .ops = &m->process->ops,
        .engine = &m->process->engine,
        .async_reads = s->async,
        .hot = s->hot,
        .owned = s->owned,
        .store = {.memory_max = s->memory_max,
                  .value_bytes_max = 65536,
                  .seed = random_next(chance)},
    };
}

/* A rolling upgrade happens at restarts; now and then one is taken back. */
static void choose_version(struct machine *m)
{
    struct world *world = m->world;
    uint64_t way = random_below(&world->chance_machines, 10);
    uint16_t before = m->version_max;
    if (!world->setup.versions || m->incarnation == 1) {
        return;
    }
    m->version_max = way < 6 ? FRAME_VERSION_MAX : way < 8 ? FRAME_VERSION : before;
    if (m->version_max != before) {
        world_befell(world, SIM_FAULT_VERSIONS);
        trace_line(world, "node %u knows versions up to %u now", m->id, m->version_max);
    }
}

static bool host_transactions(void *context, uint32_t space)
{
    (void)context;
    return space == 0;
}

void machine_start(struct machine *m)
{
    HK_ASSERT(m->state == MACHINE_DOWN && m->node == NULL);
    struct world *world = m->world;
    m->nonce = random_next(&world->chance_machines) | 1u;
    m->incarnation++;
    choose_version(m);
    m->mute = false;
    m->leaving = false;
    m->left = m->wipes = false;
    m->started_us = world->now_us;
    m->process = malloc(sizeof *m->process);
    HK_ASSERT(m->process != NULL);
    m->process->machine = m;
    redis_host_init(&m->process->host, host_wall_us, m->process);
    m->process->trading = m->process->host;
    m->process->trading.transactions = host_transactions;
    struct node_config config;
    describe_node(m, &config);
    m->bootstrap = false;
    const struct env env = {
        .context = m->process,
        .receive = env_receive,
        .send = env_send,
        .request = env_request,
        .reply = env_reply,
        .wake = env_wake,
        .wall_ms = env_wall_ms,
        .persist = env_persist,
        .version = env_version,
    };
    world->result->stats.incarnations++;
    trace_line(world, "node %u starts, incarnation %u, nonce %" PRIx64, m->id, m->incarnation,
               m->nonce);
    int err = node_create(&config, &env, machine_clock(m, world->now_us), &m->node);
    if (err == HK_OK) {
        err = store_thread_register(node_store(m->node, 0), &m->eye);
    }
    if (err == HK_OK && node_directory(m->node, 0) != NULL) {
        err = store_thread_register(node_directory(m->node, 0), &m->eye_entries);
    }
    if (err != HK_OK) {
        world_violation(world, "node %u cannot start: %s", m->id, hk_err_name(err));
        return;
    }
    store_offline(m->eye);
    if (m->eye_entries != NULL) {
        store_offline(m->eye_entries);
    }
    m->state = m->pauses > 0 ? MACHINE_PAUSED : MACHINE_UP;
    for (uint32_t i = 0; i < m->workers; i++) {
        machine_notice(m, i);
    }
}

static void count_node(struct machine *m)
{
    struct node_stats stats = {0};
    node_stats(m->node, &stats);
    struct sim_stats *sum = &m->world->result->stats;
    sum->messages += stats.messages_out;
    sum->tries += stats.lotus_tries;
    sum->tries_again += stats.lotus_tries > 0 ? stats.txn_aborts : 0;
    for (uint32_t i = 0; i < m->workers; i++) {
        uint64_t most = worker_stats(node_worker(m->node, i))->lotus_tries_most;
        sum->tries_most = most > sum->tries_most ? most : sum->tries_most;
    }
}

void machine_stop(struct machine *m, bool kill)
{
    HK_ASSERT(m->state != MACHINE_DOWN && m->node != NULL && m->busy == 0);
    struct world *world = m->world;
    trace_line(world, "node %u %s", m->id, kill ? "is killed" : "ends");
    count_node(m);
    ghost_ended(m);
    release_outputs(m, kill ? 0 : m->outputs_n);
    m->mute = kill;
    store_online(m->eye);
    store_thread_unregister(m->eye);
    m->eye = NULL;
    if (m->eye_entries != NULL) {
        store_online(m->eye_entries);
        store_thread_unregister(m->eye_entries);
        m->eye_entries = NULL;
    }
    node_destroy(m->node);
    m->node = NULL;
    free(m->process);
    m->process = NULL;
    release_outputs(m, kill ? 0 : m->outputs_n);
    m->state = MACHINE_DOWN;
    crowd_lost(m);
    traders_lost(m);
    for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++) {
        clear_actor(&m->actors[i]);
    }
}

void machine_kill_midway(struct machine *m, uint32_t permille)
{
    release_outputs(m, m->outputs_n * permille / 1000);
    machine_stop(m, true);
}

void machine_wipe(struct machine *m)
{
    m->world->result->stats.wipes++;
    trace_line(m->world, "node %u was dropped and wipes itself", m->id);
    machine_stop(m, false);
    if (!machine_is_zombie(m)) {
        operator_start(m->world, m->id);
    }
}

void machine_split(struct machine *m, struct machine *zombie, bool keeps_state)
{
    HK_ASSERT(m->state == MACHINE_PAUSED && zombie->node == NULL && machine_is_zombie(zombie));
    uint8_t place = zombie->place;
    free(zombie->outputs); /* of an earlier zombie in this place */
    *zombie = *m;
    zombie->place = place;
    zombie->process->machine = zombie;
    for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++) {
        struct actor *a = &zombie->actors[i];
        a->inbox_last = a->inbox_first == NULL ? &a->inbox_first : a->inbox_last;
    }
    crowd_follow(m, zombie);
    traders_follow(m, zombie);
    ghost_follow(m, zombie);
    machine_init(m, m->world, m->id, m->place);
    m->incarnation = zombie->incarnation;
    m->version_max = zombie->version_max;
    m->kept_generation = keeps_state ? zombie->kept_generation : 0;
    m->kept_epoch = keeps_state ? zombie->kept_epoch : 0;
    m->clock_offset_us = (int64_t)random_between(&m->world->chance_machines, 1000000, 1000000000);
    for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++) {
        m->actors[i].poll_token = zombie->actors[i].poll_token + 1;
    }
}

void machine_deinit(struct machine *m)
{
    if (m->node != NULL) {
        machine_stop(m, true);
    }
    free(m->outputs);
}

void machine_pause(struct machine *m)
{
    m->pauses++;
    if (m->state == MACHINE_UP) {
        m->state = MACHINE_PAUSED;
        m->held = m->outputs_n > 0;
        m->disturbed_us = m->world->now_us;
    }
}

void machine_looks_again(struct machine *m, uint32_t worker)
{
    for (uint32_t i = 0; worker == 0 && i < SIM_WORKERS_MAX; i++) {
        m->actors[i].stalled_us = m->world->now_us;
    }
}

void machine_resume(struct machine *m)
{
    HK_ASSERT(m->pauses > 0);
    m->pauses--;
    if (m->state != MACHINE_PAUSED || m->pauses > 0) {
        return;
    }
    m->state = MACHINE_UP;
    m->disturbed_us = m->world->now_us;
    machine_looks_again(m, 0);
    release_outputs(m, m->outputs_n);
    for (uint32_t i = 0; i < m->workers; i++) {
        machine_notice(m, i);
    }
}

void machine_step_clock(struct machine *m, uint64_t by_us)
{
    m->clock_offset_us += (int64_t)by_us;
    for (uint32_t i = 0; m->node != NULL && i < m->workers; i++) {
        machine_notice(m, i);
    }
}

/* ---- Polling ---- */

static uint64_t poll_gap(struct machine *m)
{
    return random_between(&m->world->chance_schedule, 1, m->world->setup.poll_gap_us) * m->slow;
}

void machine_schedule(struct machine *m, uint32_t worker, uint64_t at_us)
{
    struct actor *a = &m->actors[worker];
    if (m->state != MACHINE_UP || a->stalls > 0 || at_us >= a->poll_at_us) {
        return;
    }
    a->poll_at_us = at_us;
    a->poll_token++;
    world_plan(m->world, at_us, HAPPENS_POLL, m->place, worker, a->poll_token, NULL);
}

void machine_notice(struct machine *m, uint32_t worker)
{
    machine_schedule(m, worker, m->world->now_us + poll_gap(m));
}

void machine_deliver(struct machine *m, struct parcel *parcel)
{
    if (m->node == NULL) {
        parcel_destroy(parcel);
        return;
    }
    uint32_t worker = parcel->worker % m->workers;
    struct actor *a = &m->actors[worker];
    parcel->arrived_step = m->world->step;
    *a->inbox_last = parcel;
    a->inbox_last = &parcel->next;
    a->inbox_n++;
    machine_notice(m, worker);
}

static void plan_next_poll(struct machine *m, uint32_t worker, const struct poll_result *result,
                           bool stale)
{
    struct actor *a = &m->actors[worker];
    struct worker *w = node_worker(m->node, worker);
    uint64_t soon_us = m->world->now_us + poll_gap(m);
    if (result->events > 0) {
        machine_schedule(m, worker, soon_us);
        return;
    }
    a->asleep = worker_sleep(w);
    uint64_t due_us = a->asleep ? machine_virtual(m, worker_deadline(w)) : soon_us;
    /* A poll that went by an old reading of the clock did not see what had arrived since. */
    machine_schedule(m, worker, due_us < soon_us || stale ? soon_us : due_us);
}

/* A poll that had something to do, though nothing came and nothing leaves, may well follow another
 * one; but not for ever. */
static void check_spinning(struct machine *m, uint32_t worker, const struct poll_result *result)
{
    struct actor *a = &m->actors[worker];
    bool nothing = result->events > 0 && m->outputs_n == 0 && !a->took;
    a->spins = nothing ? a->spins + 1 : 0;
    a->took = false;
    if (a->spins > SPINS_MAX) {
        world_violation(m->world, "node %u worker %u runs in circles: %u polls on nothing", m->id,
                        worker, a->spins);
    }
}

void machine_poll(struct machine *m, uint32_t worker)
{
    struct world *world = m->world;
    struct actor *a = &m->actors[worker];
    a->poll_at_us = NEVER;
    if (m->state != MACHINE_UP || a->stalls > 0 || a->busy) {
        return;
    }
    if (world->result->stats.polls++ > POLLS_MAX) {
        world_violation(world, "more than %u polls: a worker runs without end", POLLS_MAX);
        return;
    }
    bool stale = a->stale_us != 0;
    uint64_t now_us = stale ? a->stale_us : world->now_us;
    m->poll_step = m->cutoff_step = stale ? a->stale_step : world->step;
    a->stale_us = 0;
    struct worker *w = node_worker(m->node, worker);
    if (a->asleep) { /* first, as in the server: sessions are closed by a worker that is awake */
        worker_awake(w);
        a->asleep = false;
    }
    crowd_prepare(m, worker);
    traders_prepare(m, worker);
    uint32_t max_events = m->trap == TRAP_NONE ? world->setup.max_events : 1;
    struct poll_result result = worker_poll(w, machine_clock(m, now_us), max_events);
    worker_check(w);
    crowd_polled(m, worker);
    trace_note(&world->trace, (uint64_t)m->place << 40 | (uint64_t)worker << 32 | result.events);
    trace_note(&world->trace, world->now_us);
    if (trace_wanted(&world->trace) && result.events > 0) {
        trace_line(world, "%s %u worker %u polled: %u events, %zu outputs%s",
                   machine_is_zombie(m) ? "zombie" : "node", m->id, worker, result.events,
                   m->outputs_n, stale ? ", by an old clock" : "");
    }
    check_spinning(m, worker, &result);
    ghost_polled(m, worker);
    m->left = m->left || (result.flags & POLL_LEFT) != 0;
    m->wipes = m->wipes || (result.flags & POLL_WIPE) != 0;
    if (m->busy == 0 && m->left) {
        fault_left(m);
    } else if (m->busy == 0 && m->wipes) {
        machine_wipe(m);
    } else if (m->busy > 0 && (m->left || m->wipes)) {
        release_outputs(m, m->outputs_n);
    } else if (death_strikes(m)) {
        return;
    } else if (m->trap == TRAP_NONE || m->outputs_n == 0 || !fault_snap(m)) {
        release_outputs(m, m->outputs_n);
        plan_next_poll(m, worker, &result, stale);
    }
}
