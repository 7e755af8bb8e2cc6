#include "sim/mutants.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/flips.h"
#include "engine/hermes/hermes.h"
#include "node/node.h"
#include "view/machine.h"

struct family {
    const char *name;
    const char *const *rules;
    uint32_t n;
};

static const struct family families[] = {
    {"view", view_rule_names, VIEW_RULES},
    {"hermes", hermes_rule_names, HERMES_RULES},
    {"node", node_rule_names, NODE_RULES},
};
#define FAMILIES (sizeof families / sizeof families[0])

/* Rules whose absence a few thousand runs need not show, and why. Runs may show them still. */
#define CHAIN "it takes a longer chain of coincidences than most runs hold; a model test shows it"
#define HEALED "what it leaves undone, a timer makes good: it costs time, not safety"
#define UNSHOWN "it takes a longer chain of coincidences, and no test drives it by hand yet"
#define MASKED "another rule prevents the fault as well"
static const struct {
    const char *name;
    const char *why;
} survivors[] = {
    {"view:joint-majority", "the configured set does not change in these runs"},
    {"view:members-grant", CHAIN},
    {"view:admission-wait", CHAIN},
    {"view:grant-epoch", CHAIN},
    {"view:grant-incarnation", CHAIN},
    {"view:grant-members", CHAIN},
    {"view:first-view-all", CHAIN},
    {"view:confirm", CHAIN},
    {"view:adopted", CHAIN},
    {"hermes:epoch", CHAIN},
    {"hermes:val_any_epoch", HEALED},
    {"hermes:val_member", CHAIN},
    {"hermes:ack_same", CHAIN},
    {"hermes:ack_ts", MASKED},
    {"hermes:no_stale", CHAIN},
    {"hermes:cid_trigger", MASKED},
    {"hermes:lost_valid", CHAIN},
    {"hermes:o3_epoch", CHAIN},
    {"hermes:cid", CHAIN},
    {"hermes:answer_valid", HEALED},
    {"hermes:agreed_forget", CHAIN},
    {"hermes:shadow_forget", CHAIN},
    {"hermes:chunk_reported", CHAIN},
    {"hermes:write_val", HEALED},
    {"node:lease-answer", UNSHOWN},
    {"node:donor-epoch", UNSHOWN},
};

#define RULES ((uint32_t)VIEW_RULES + (uint32_t)HERMES_RULES + (uint32_t)NODE_RULES)

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
    const struct family *family = family_of(&i);
    uint64_t *rules[] = {&config->view_rules_off, &config->hermes_rules_off,
                         &config->node_rules_off};
    *rules[family - families] |= UINT64_C(1) << i;
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
