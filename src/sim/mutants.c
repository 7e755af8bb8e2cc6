#include "sim/mutants.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/flips.h"
#include "engine/craq/craq.h"
#include "engine/galene/galene.h"
#include "engine/hermes/hermes.h"
#include "engine/homes/homes.h"
#include "engine/lotus/lotus.h"
#include "engine/homes/homes.h"
#include "engine/zab/zab.h"
#include "engine/zeus/zeus.h"
#include "node/engines.h"
#include "node/node.h"
#include "view/machine.h"

enum owner { OWNER_VIEW, OWNER_NODE, OWNER_ENGINE };

struct family {
    const char *name;
    const char *const *rules;
    uint32_t n;
    enum owner owner;
    uint32_t first; /* the bit of its first rule */
};

static const struct family families[] = {
    {"view", view_rule_names, VIEW_RULES, OWNER_VIEW, 0},
    {"hermes", hermes_rule_names, HERMES_RULES, OWNER_ENGINE, 0},
    {"node", node_rule_names, NODE_RULES, OWNER_NODE, 0},
    {"craq", craq_rule_names, CRAQ_RULES, OWNER_ENGINE, 0},
    {"zab", zab_rule_names, ZAB_RULES, OWNER_ENGINE, 0},
    {"galene", galene_rule_names, GALENE_RULES, OWNER_ENGINE, 0},
    {"galene", homes_rule_names, HOMES_RULES_COMMON, OWNER_ENGINE, GALENE_RULES},
    {"lotus", lotus_rule_names, LOTUS_RULES, OWNER_ENGINE, 0},
    {"lotus:map", homes_rule_names, HOMES_RULES, OWNER_ENGINE, LOTUS_RULES},
    {"lotus:lock", lock_rule_names, LOCK_RULES, OWNER_ENGINE, LOTUS_RULES + HOMES_RULES},
    {"zeus:own", own_rule_names, OWN_RULES, OWNER_ENGINE, 0},
    {"zeus:commit", commit_rule_names, COMMIT_RULES, OWNER_ENGINE, OWN_RULES},
};
#define FAMILIES (sizeof families / sizeof families[0])

/* Nothing shows these: docs/TESTING.md has the arguments. */
#define HEALED "what it leaves undone, a timer makes good: it costs time, not safety"
#define MASKED "another rule prevents the fault as well"
#define TESTED "no run has met what it takes; a test that drives the nodes by hand shows it"
#define UNNEEDED "the specification does without it; a test shows that it acts"
#define SAME "it changes nothing that anybody can see"
static const struct {
    const char *name;
    const char *why;
} survivors[] = {
    {"view:members-grant", MASKED},
    {"hermes:val_any_epoch", HEALED},
    {"hermes:ack_ts", MASKED},
    {"hermes:no_stale", MASKED},
    {"hermes:cid_trigger", MASKED},
    {"hermes:answer_valid", HEALED},
    {"node:lease-answer", MASKED},
    {"node:donor-epoch", TESTED},
    {"node:forward-once", TESTED},
    {"node:handed-map", TESTED},
    {"node:moving-gate", TESTED},
    {"craq:query_clean", TESTED},
    {"craq:late_write", TESTED},
    {"craq:late_head", TESTED},
    {"craq:again", TESTED},
    {"zab:witnesses", TESTED},
    {"zab:round", TESTED},
    {"zab:base", TESTED},
    {"zab:tombstones", TESTED},
    {"zab:rounds", TESTED},
    {"galene:higher", TESTED},
    {"galene:newcomers", TESTED},
    {"galene:upd_generation", TESTED},
    {"galene:inv_generation", TESTED},
    {"galene:cid", TESTED},
    {"galene:report_idle", TESTED},
    {"galene:leaving", TESTED},
    {"galene:reported", TESTED},
    {"galene:named", TESTED},
    {"galene:reenter", TESTED},
    {"galene:keeper", TESTED},
    {"galene:move_dead", TESTED},
    {"galene:rescue", TESTED},
    {"galene:rescue_all", TESTED},
    {"galene:rescue_valid", TESTED},
    {"galene:slots_states", TESTED},
    {"galene:slots_newest", TESTED},
    {"galene:slots_lost", TESTED},
    {"galene:slots_process", TESTED},
    {"galene:slots_whole", TESTED},
    {"galene:slots_one", TESTED},
    {"galene:slots_ready", TESTED},
    {"galene:slots_named", TESTED},
    {"galene:slots_moved", TESTED},
    {"galene:slots_hot", TESTED},
    {"galene:slots_free", TESTED},
    {"node:forward-once", TESTED},
    {"node:handed-map", TESTED},
    {"node:moving-gate", TESTED},
    {"lotus:cleaner", TESTED},
    {"lotus:again", TESTED},
    {"lotus:gap_own", TESTED},
    {"lotus:gap_step", TESTED},
    {"lotus:age_kept", HEALED},
    {"lotus:goes_on", TESTED},
    {"lotus:move_gap", TESTED},
    {"lotus:move_kept", TESTED},
    {"lotus:move_left", TESTED},
    {"lotus:move_back", TESTED},
    {"lotus:lock:waiters", TESTED},
    {"lotus:lock:behind", TESTED},
    {"lotus:lock:kill", TESTED},
    {"lotus:lock:kill_late", TESTED},
    {"lotus:lock:wounded", TESTED},
    {"lotus:lock:upgrade", TESTED},
    {"lotus:lock:promote", TESTED},
    {"lotus:map:slots_states", TESTED},
    {"lotus:map:slots_newest", TESTED},
    {"lotus:map:slots_whole", TESTED},
    {"lotus:map:slots_one", TESTED},
    {"lotus:map:slots_ready", TESTED},
    {"lotus:map:slots_named", TESTED},
    {"lotus:map:slots_purged", TESTED},
    {"lotus:map:slots_hot", TESTED},
    {"lotus:map:slots_free", TESTED},
    {"lotus:map:slots_role", TESTED},
    {"lotus:map:slots_given", TESTED},
    {"lotus:map:slots_kept", TESTED},
    {"zeus:own:stale", TESTED},
    {"zeus:own:epoch", UNNEEDED},
    {"zeus:own:shadow", TESTED},
    {"zeus:own:resp_again", UNNEEDED},
    {"zeus:commit:inv_epoch", TESTED},
    {"flip:view/acceptor.c:view_held_tick:3:&&", SAME},
    {"flip:view/heartbeat.c:successor_waits:6:>", SAME},
};

#define RESIZE (1u << SIM_FAULT_RESIZE)
static const struct mutant_hint hints[] = {
    {.name = "view:grants-first", .explore = "view-drop"},
    {.name = "view:promise-drops", .explore = "view-bridge", .states = 1000000},
    {.name = "view:members-vote", .explore = "view-amnesia"},
    {.name = "view:admission-wait", .explore = "view-admission"},
    {.name = "view:grant-epoch", .explore = "view-zombie"},
    {.name = "view:grant-incarnation", .explore = "view-successor"},
    {.name = "view:grant-members", .explore = "view-zombie-known"},
    {.name = "view:accept-ends-lease", .explore = "view-drop"},
    {.name = "view:first-view-all", .explore = "view-boot"},
    {.name = "view:kept-state", .explore = "view-kept"},
    {.name = "view:joint-majority", .faults = RESIZE, .explore = "view-joint"},
    {.name = "view:live-majority", .explore = "view-pair"},
    {.name = "view:confirm", .explore = "view-drop"},
    {.name = "view:wipe", .explore = "view-dropped"},
    {.name = "view:no-readmit", .explore = "view-dropped"},
    {.name = "view:adopted", .explore = "view-shadow"},
    {.name = "view:healthy", .explore = "view-wedge"},
    {.name = "hermes:epoch", .explore = "crash-rmw"},
    {.name = "hermes:ack_same", .explore = "w-w-rmw"},
    {.name = "hermes:ack_reset", .explore = "crash-rmw"},
    {.name = "hermes:lost_valid", .explore = "crash-rmw"},
    {.name = "hermes:no_own_ack", .explore = "two-rmws"},
    {.name = "hermes:o3_writes", .o3 = SIM_ON, .explore = "o3"},
    {.name = "hermes:o3_epoch", .o3 = SIM_ON, .explore = "o3-rejoin"},
    {.name = "hermes:cid", .explore = "rejoin"},
    {.name = "hermes:chunk_higher", .explore = "join"},
    {.name = "hermes:chunk_state", .explore = "join"},
    {.name = "hermes:first", .explore = "join-forget"},
    {.name = "hermes:agreed_forget", .explore = "delete-first"},
    {.name = "hermes:shadow_forget", .explore = "delete-join", .states = 1500000},
    {.name = "hermes:trans_replay", .explore = "crash-trans"},
    {.name = "hermes:write_val", .explore = "crash"},
    {.name = "hermes:chunk_reported", .explore = "join-forgotten"},
    {.name = "hermes:val_member", .explore = "second-life"},
    {.name = "hermes:check", .async = SIM_ON, .explore = "async"},
    {.name = "lotus:prepare_read", .explore = "lotus-reader"},
    {.name = "lotus:abort_all", .explore = "lotus-three"},
    {.name = "lotus:all_prepared", .explore = "lotus-commit"},
    {.name = "lotus:no_timeout", .explore = "lotus-death"},
    {.name = "lotus:outcomes", .explore = "lotus-death"},
    {.name = "lotus:doubt", .explore = "lotus-death"},
    {.name = "lotus:gone", .explore = "lotus-death"},
    {.name = "lotus:epoch", .explore = "lotus-deaths"},
    {.name = "lotus:doubt_all", .explore = "lotus-deaths"},
    {.name = "lotus:unsure", .explore = "lotus-deaths"},
    {.name = "lotus:process", .explore = "lotus-joins"},
};

#define RULES                                                                                      \
    ((uint32_t)VIEW_RULES + (uint32_t)HERMES_RULES + (uint32_t)NODE_RULES + (uint32_t)CRAQ_RULES + \
     (uint32_t)ZAB_RULES + (uint32_t)GALENE_RULES + (uint32_t)HOMES_RULES_COMMON +                 \
     (uint32_t)LOTUS_RULES + (uint32_t)HOMES_RULES + (uint32_t)LOCK_RULES + (uint32_t)OWN_RULES +  \
     (uint32_t)COMMIT_RULES)

/* Flipped operators come after the rules. */
static uint32_t flips_count(void)
{
#ifdef HK_MUTANTS
    return hk_flips;
#else
    return 0;
#endif
}

static const char *flip_name(uint32_t i)
{
#ifdef HK_MUTANTS
    return hk_flip_names[i];
#else
    (void)i;
    return "";
#endif
}

uint32_t mutants_count(void)
{
    return RULES + flips_count();
}

static const struct family *family_of(uint32_t *i)
{
    for (size_t f = 0; f < FAMILIES; f++) {
        if (*i < families[f].n) {
            return &families[f];
        }
        *i -= families[f].n;
    }
    HK_ASSERT(false);
    return NULL;
}

void mutant_name(uint32_t i, char name_out[MUTANT_NAME_BYTES])
{
    if (i >= RULES) {
        snprintf(name_out, MUTANT_NAME_BYTES, "flip:%s", flip_name(i - RULES));
        return;
    }
    const struct family *family = family_of(&i);
    snprintf(name_out, MUTANT_NAME_BYTES, "%s:%s", family->name, family->rules[i]);
}

void mutant_switch_off(uint32_t i, struct sim_config *config)
{
    if (i >= RULES) {
        config->flips_on |= UINT64_C(1) << (i - RULES);
        return;
    }
    const char *engine = mutant_engine(i);
    const struct family *family = family_of(&i);
    uint64_t *rules[] = {[OWNER_VIEW] = &config->view_rules_off,
                         [OWNER_NODE] = &config->node_rules_off,
                         [OWNER_ENGINE] = &config->engine_rules_off};
    const char *runs = config->engine != NULL ? config->engine : engines_at(0)->name;
    if (engine == NULL || strcmp(engine, runs) == 0) {
        *rules[family->owner] |= UINT64_C(1) << (family->first + i);
    }
}

const char *mutant_engine(uint32_t i)
{
    char name[MUTANT_NAME_BYTES];
    mutant_name(i, name);
    for (uint32_t k = 0; engines_at(k) != NULL; k++) {
        const char *engine = engines_at(k)->name;
        char rule[MUTANT_NAME_BYTES];
        char flip[MUTANT_NAME_BYTES];
        snprintf(rule, sizeof rule, "%s:", engine);
        snprintf(flip, sizeof flip, "flip:engine/%s/", engine);
        if (strncmp(name, rule, strlen(rule)) == 0 || strncmp(name, flip, strlen(flip)) == 0) {
            return engine;
        }
    }
    return NULL;
}

uint32_t mutant_find(const char *name)
{
    uint32_t i = 0;
    char other[MUTANT_NAME_BYTES];
    for (; i < mutants_count(); i++) {
        mutant_name(i, other);
        if (strcmp(name, other) == 0) {
            break;
        }
    }
    return i;
}

const char *mutant_survives(uint32_t i)
{
    char name[MUTANT_NAME_BYTES];
    mutant_name(i, name);
    for (size_t s = 0; s < sizeof survivors / sizeof survivors[0]; s++) {
        if (strcmp(name, survivors[s].name) == 0) {
            return survivors[s].why;
        }
    }
    return NULL;
}

const struct mutant_hint *mutant_hint(uint32_t i)
{
    char name[MUTANT_NAME_BYTES];
    mutant_name(i, name);
    for (size_t h = 0; h < sizeof hints / sizeof hints[0]; h++) {
        if (strcmp(name, hints[h].name) == 0) {
            return &hints[h];
        }
    }
    return NULL;
}
