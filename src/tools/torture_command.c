/* `horkos torture`: see torture_options.c for its command line, docs/TORTURE.md for the rest. One
 * thread drives nodes, faults and clients; another one judges. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/commands.h"
#include "tools/dev_cluster.h"
#include "tools/torture.h"

#define STATUS_NOT_RUN 3
#define TURN_US 5000u       /* a turn waits no longer */
#define WATCH_US 20000u     /* between two looks at the processes */
#define ASK_US 200000u      /* between two questions how a node is ... */
#define ASK_SOON_US 40000u  /* ... and while somebody waits for it */
#define START_US 60000000u  /* for the first view */
#define CALM_SUCCESSES 5u   /* that each client must have after the faults */
#define JUDGE_US 600000000u /* for what is left to judge at the end */
#define POLLED_MAX (TORTURE_CLIENTS_MAX + BANK_CLIENTS_MAX + 2 * TORTURE_NODES_MAX)

/* The first word counts. */
__attribute__((format(printf, 4, 5))) static void give_up(struct torture *t,
                                                          enum torture_verdict verdict,
                                                          const char *what, const char *format, ...)
{
    va_list list;
    if (t->verdict != TORTURE_SOUND) {
        return;
    }
    va_start(list, format);
    vsnprintf(t->why, sizeof t->why, format, list);
    va_end(list);
    /* A wrong answer is quoted, and may hold any byte; text and JSON may not. */
    for (char *at = t->why; *at != '\0'; at++) {
        *at = (*at >= ' ' && *at <= '~') || *at == '\n' ? *at : '?';
    }
    t->verdict = verdict;
    snprintf(t->what, sizeof t->what, "%s", verdict == TORTURE_VIOLATION ? what : "");
}

static void blame_key(struct torture *t, uint64_t id)
{
    t->has_key = true;
    t->key = id;
}

/* ---- One turn ---- */

static void take_judged(struct torture *t)
{
    for (struct torture_key *key; (key = torture_judge_take(&t->judge)) != NULL;) {
        t->judged += !key->judged;
        t->states += key->states;
        if (key->verdict == CHECK_REFUSED) {
            char name[TORTURE_NAME_BYTES];
            (void)torture_key_name(key, name);
            if (t->verdict == TORTURE_SOUND) {
                give_up(t, TORTURE_VIOLATION, "history", "key %s: %s", name,
                        key->text == NULL ? "refused" : key->text);
                blame_key(t, key->id);
            }
            return; /* what was judged is kept as it is */
        }
        if (key->verdict == CHECK_NOMEM) {
            give_up(t, TORTURE_NOT_RUN, "", "no memory for a history");
        }
        if (key->verdict == CHECK_TOO_HARD && !key->undecided) {
            key->undecided = true;
            t->undecided++;
        }
        torture_keys_judged(&t->keys, key);
    }
}

static void look_for_violations(struct torture *t)
{
    if (t->cluster.ended[0] != '\0') {
        give_up(t, TORTURE_VIOLATION, "end", "%s", t->cluster.ended);
    }
    if (t->faults.stuck) {
        give_up(t, TORTURE_VIOLATION, "liveness", "%s", t->faults.wrong);
    }
    if (t->faults.wrong[0] != '\0') {
        give_up(t, TORTURE_NOT_RUN, "", "%s", t->faults.wrong);
    }
    if (t->crowd.wrong[0] != '\0' && t->verdict == TORTURE_SOUND) {
        give_up(t, TORTURE_VIOLATION, "reply", "%s", t->crowd.wrong);
        if (t->crowd.wrong_has_key) {
            blame_key(t, t->crowd.wrong_key);
        }
    }
    if (t->final_begun && t->final.wrong[0] != '\0' && t->verdict == TORTURE_SOUND) {
        give_up(t, TORTURE_VIOLATION, "replicas", "%s", t->final.wrong);
        blame_key(t, t->final.wrong_key);
    }
    if (t->bank.wrong[0] != '\0') {
        give_up(t, TORTURE_VIOLATION, "bank", "%s", t->bank.wrong);
    }
    if (t->crowd.no_memory || t->bank.no_memory || t->final.no_memory || t->slots.no_memory) {
        give_up(t, TORTURE_NOT_RUN, "", "no memory");
    }
}

static void poll_all(struct torture *t, uint64_t next_us)
{
    struct pollfd set[POLLED_MAX];
    uint32_t nodes = t->options.nodes;
    nfds_t n = nodes;
    torture_cluster_poll_set(&t->cluster, set);
    torture_crowd_poll_set(&t->crowd, set + n);
    n += t->crowd.n;
    torture_bank_poll_set(&t->bank, set + n);
    n += t->bank.n;
    if (t->final_begun) {
        torture_final_poll_set(&t->final, set + n);
        n += nodes;
    }
    uint64_t now_us = clock_boot_us();
    struct timespec time = {.tv_nsec = next_us > now_us ? (long)(next_us - now_us) * 1000 : 0};
    if (ppoll(set, n, &time, NULL) <= 0) {
        return;
    }
    torture_cluster_polled(&t->cluster, set);
    torture_crowd_polled(&t->crowd, set + nodes);
    torture_bank_polled(&t->bank, set + nodes + t->crowd.n);
    if (t->final_begun) {
        torture_final_polled(&t->final, set + nodes + t->crowd.n + t->bank.n);
    }
}

/* False: there is no use in going on. */
static bool turn(struct torture *t, uint64_t ask_us)
{
    uint64_t now_us = clock_boot_us();
    if (now_us >= t->watched_us + WATCH_US) {
        t->watched_us = now_us;
        torture_cluster_watch(&t->cluster, now_us,
                              torture_faults_wait(&t->faults) ? ASK_SOON_US : ask_us);
        if (dev_pause(0)) {
            give_up(t, TORTURE_NOT_RUN, "", "interrupted");
        }
    }
    if (t->began_us != 0) {
        torture_faults_step(&t->faults, now_us);
    }
    if (t->began_us != 0 && torture_homed(&t->options) && !t->final_begun) {
        torture_slots_step(&t->slots, now_us);
    }
    uint64_t next_us = torture_crowd_step(&t->crowd, now_us);
    uint64_t bank_us = torture_bank_step(&t->bank, now_us);
    next_us = bank_us < next_us ? bank_us : next_us;
    if (t->final_begun) {
        torture_final_step(&t->final, now_us);
    }
    poll_all(t, next_us < now_us + TURN_US ? next_us : now_us + TURN_US);
    take_judged(t);
    look_for_violations(t);
    return t->verdict == TORTURE_SOUND;
}

/* ---- Phases ---- */

static bool serve_all(struct torture *t, uint64_t since_us)
{
    return torture_cluster_sound(&t->cluster, since_us) == t->cluster.nodes &&
           !torture_cluster_lost(&t->cluster);
}

static bool start_all(struct torture *t)
{
    uint64_t end_us = clock_boot_us() + START_US;
    for (uint32_t node = 1; node <= t->options.nodes; node++) {
        if (!torture_cluster_start(&t->cluster, node)) {
            give_up(t, TORTURE_NOT_RUN, "", "node %u cannot be started", node);
            return false;
        }
    }
    while (!serve_all(t, 1)) {
        struct pollfd set[TORTURE_NODES_MAX];
        uint64_t now_us = clock_boot_us();
        torture_cluster_watch(&t->cluster, now_us, ASK_SOON_US);
        torture_cluster_poll_set(&t->cluster, set);
        if (poll(set, t->options.nodes, 5) > 0) {
            torture_cluster_polled(&t->cluster, set);
        }
        if (t->cluster.ended[0] != '\0') {
            give_up(t, TORTURE_NOT_RUN, "", "the cluster does not start: %s", t->cluster.ended);
        } else if (now_us > end_us) {
            give_up(t, TORTURE_NOT_RUN, "", "the cluster does not serve in time");
        } else if (dev_pause(0)) {
            give_up(t, TORTURE_NOT_RUN, "", "interrupted");
        }
        if (t->verdict != TORTURE_SOUND) {
            torture_cluster_tell(&t->cluster, stderr);
            return false;
        }
    }
    return true;
}

static void befall(struct torture *t)
{
    t->began_us = clock_boot_us();
    if (!t->options.json) {
        printf("all nodes serve; it begins\n");
        fflush(stdout);
    }
    while (clock_boot_us() < t->began_us + t->options.seconds * UINT64_C(1000000) &&
           turn(t, ASK_US)) {
    }
}

/* All faults end; all nodes must serve, and all clients get on, in time. */
static void heal(struct torture *t)
{
    uint64_t from_us = clock_boot_us();
    uint64_t end_us = from_us + t->options.heal_s * UINT64_C(1000000);
    torture_faults_heal(&t->faults, from_us);
    while (t->got_on_us == 0 && turn(t, ASK_SOON_US)) {
        uint64_t now_us = clock_boot_us();
        if (t->calm_us == 0 && torture_faults_over(&t->faults)) {
            t->calm_us = now_us;
            torture_crowd_calm(&t->crowd);
            torture_bank_calm(&t->bank);
            torture_slots_calm(&t->slots);
        }
        if (t->calm_us != 0 && t->served_us == 0 && serve_all(t, t->calm_us)) {
            t->served_us = now_us;
        }
        if (t->served_us != 0 && torture_crowd_least_calm(&t->crowd) >= CALM_SUCCESSES &&
            torture_bank_least_calm(&t->bank) >= CALM_SUCCESSES) {
            t->got_on_us = now_us;
            torture_crowd_end_gaps(&t->crowd, now_us);
        }
        if (t->got_on_us == 0 && now_us > end_us) {
            give_up(t, TORTURE_VIOLATION, "liveness",
                    t->calm_us == 0     ? "the faults could not be ended within %u s"
                    : t->served_us == 0 ? "%u s after the faults not all nodes serve"
                                        : "%u s after the faults not all clients get on",
                    t->options.heal_s);
        }
    }
}

/* Clients go; what they began ends; every key gets its closing read. */
static void drain(struct torture *t)
{
    uint64_t end_us = clock_boot_us() + t->options.heal_s * UINT64_C(1000000);
    t->crowd.drains = true;
    t->bank.drains = true;
    torture_keys_end(&t->keys);
    while ((!torture_crowd_idle(&t->crowd) || !torture_bank_idle(&t->bank) ||
            !torture_keys_all_closed(&t->keys)) &&
           turn(t, ASK_US)) {
        if (clock_boot_us() > end_us) {
            give_up(t, TORTURE_VIOLATION, "liveness", "not all keys can be read within %u s",
                    t->options.heal_s);
        }
    }
}

static void wait_for_judge(struct torture *t)
{
    uint64_t end_us = clock_boot_us() + JUDGE_US;
    while (t->verdict == TORTURE_SOUND && !torture_judge_idle(&t->judge) && turn(t, ASK_US)) {
        if (clock_boot_us() > end_us) {
            give_up(t, TORTURE_NOT_RUN, "", "the histories take too long to judge");
        }
    }
}

static void read_all(struct torture *t)
{
    uint64_t end_us = clock_boot_us() + t->options.heal_s * UINT64_C(1000000);
    t->final_begun = true;
    if (!torture_final_init(&t->final, &t->options, &t->cluster, &t->keys)) {
        give_up(t, TORTURE_NOT_RUN, "", "no memory");
    }
    while (!t->final.over && t->verdict == TORTURE_SOUND && turn(t, ASK_US)) {
        if (clock_boot_us() > end_us) {
            give_up(t, TORTURE_VIOLATION, "liveness",
                    "not all keys can be read on all nodes within %u s", t->options.heal_s);
        }
    }
    if (t->verdict == TORTURE_SOUND) {
        torture_final_judge(&t->final, &t->judge);
        wait_for_judge(t);
    }
}

static void close_bank(struct torture *t)
{
    uint64_t end_us = clock_boot_us() + t->options.heal_s * UINT64_C(1000000);
    torture_bank_verify(&t->bank);
    while (!t->bank.over && t->verdict == TORTURE_SOUND && turn(t, ASK_US)) {
        if (clock_boot_us() > end_us) {
            give_up(t, TORTURE_VIOLATION, "liveness",
                    "not all transfers can be read on all nodes within %u s", t->options.heal_s);
        }
    }
}

static void run_phases(struct torture *t)
{
    void (*const phases[])(struct torture * t) = {befall,         heal,     drain,
                                                  wait_for_judge, read_all, close_bank};
    for (uint32_t i = 0; t->verdict == TORTURE_SOUND && i < sizeof phases / sizeof phases[0]; i++) {
        phases[i](t);
    }
}

/* ---- Before and after ---- */

/* Kinds that make sense here: with fewer than three nodes none can be lost. */
static uint32_t possible_kinds(const struct torture_options *options, bool separate)
{
    uint32_t kinds = options->faults;
    if (options->nodes < 3) {
        kinds &= ~(1u << TORTURE_KILL | 1u << TORTURE_LEAVE | 1u << TORTURE_BRIDGE);
    }
    if (options->nodes < 2) {
        kinds &= 1u << TORTURE_PAUSE | 1u << TORTURE_RESET_CLIENTS;
    }
    return separate ? kinds : kinds & ~TORTURE_FAULTS_NETWORK;
}

static void print_head(const struct torture *t)
{
    const struct torture_options *o = &t->options;
    printf("seed %" PRIu64 ": %u nodes, %u clients, %u keys at a time, leases of %u ms, %u s\n",
           o->seed, o->nodes, o->clients, o->keys, o->lease_ms, o->seconds);
    if (!t->net.separate) {
        printf("on loopback, without partitions: %s\n", t->net.why);
    }
    torture_plan_print(&t->plan, &t->options, stdout);
    fflush(stdout);
}

static void keep_history(struct torture *t)
{
    char name[48];
    if (!t->has_key || t->key >= t->keys.n || t->keys.all[t->key]->ops == NULL) {
        return;
    }
    snprintf(name, sizeof name, "key-%" PRIu64 ".history", t->key);
    dev_path(t->cluster.dir, name, t->history_path);
    if (!torture_report_history(t->keys.all[t->key], t->history_path)) {
        t->history_path[0] = '\0';
    }
}

static int finish(struct torture *t)
{
    bool good = true;
    torture_judge_stop(&t->judge);
    keep_history(t);
    if (t->got_on_us == 0) {
        torture_crowd_end_gaps(&t->crowd, t->watched_us);
    }
    if (t->options.json) {
        good = torture_report_json(t, stdout);
    } else {
        torture_report_text(t, stdout);
    }
    bool keep = t->options.keep || t->verdict == TORTURE_VIOLATION;
    if (keep && !t->options.json) {
        printf("the nodes' files are in %s\n", t->cluster.dir);
    }
    good = fflush(stdout) == 0 && good;
    torture_crowd_deinit(&t->crowd);
    torture_bank_deinit(&t->bank);
    torture_cluster_deinit(&t->cluster, !keep);
    if (t->final_begun) {
        torture_final_deinit(&t->final);
    }
    torture_faults_deinit(&t->faults);
    torture_keys_deinit(&t->keys);
    torture_net_close(&t->net);
    torture_plan_deinit(&t->plan);
    static const int statuses[] = {STATUS_OK, STATUS_FAILED, STATUS_NOT_RUN};
    return good ? statuses[t->verdict] : STATUS_NOT_RUN;
}

static int run(struct torture *t)
{
    const struct torture_options *o = &t->options;
    torture_net_open(&t->net, o->nodes, !o->loopback);
    dev_signals_take();
    bool good = torture_plan_draw(o, possible_kinds(o, t->net.separate), &t->plan);
    if (good && !o->json) {
        print_head(t);
    }
    if (!torture_cluster_init(&t->cluster, o, &t->plan, &t->net)) {
        give_up(t, TORTURE_NOT_RUN, "", "the cluster's files could not be made");
    }
    if (!good || !torture_keys_init(&t->keys, o->keys) ||
        !torture_faults_init(&t->faults, &t->plan, &t->cluster, &t->net) ||
        !torture_judge_start(&t->judge)) {
        give_up(t, TORTURE_NOT_RUN, "", "no memory");
    }
    torture_slots_init(&t->slots, o, &t->cluster, &t->keys, &t->bank);
    torture_crowd_init(&t->crowd, o, t->plan.think_us, &t->cluster, &t->keys, &t->judge);
    torture_bank_init(&t->bank, o, t->plan.think_us, &t->cluster);
    if (t->verdict == TORTURE_SOUND && start_all(t)) {
        run_phases(t);
    }
    return finish(t);
}

/* The plan alone, as it is where namespaces are possible unless --loopback says otherwise. */
static int show_plan(struct torture *t)
{
    const struct torture_options *o = &t->options;
    if (!torture_plan_draw(o, possible_kinds(o, !o->loopback), &t->plan)) {
        perror("horkos torture");
        return STATUS_NOT_RUN;
    }
    if (o->json) {
        json_t *json = torture_plan_json(&t->plan);
        json_dumpf(json, stdout, JSON_INDENT(2));
        json_decref(json);
        printf("\n");
    } else {
        torture_plan_print(&t->plan, &t->options, stdout);
    }
    torture_plan_deinit(&t->plan);
    return STATUS_OK;
}

int torture_command(int argc, char **argv)
{
    struct torture *t = calloc(1, sizeof *t);
    bool help = false;
    if (t == NULL) {
        perror("horkos torture");
        return STATUS_NOT_RUN;
    }
    int status = torture_options_parse(argc, argv, &t->options, &help);
    if (status == STATUS_OK && !help) {
        status = t->options.plan ? show_plan(t) : run(t);
    }
    free(t);
    return status;
}
