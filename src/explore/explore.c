#include "explore/explore.h"

#include <string.h>

#include "engine/lotus/lotus.h"
#include "engine/zeus/own.h"

const char *const explore_family_names[EXPLORE_FAMILIES] = {
    [EXPLORE_HERMES] = "hermes",      [EXPLORE_GALENE] = "galene",     [EXPLORE_OWN] = "zeus:own",
    [EXPLORE_COMMIT] = "zeus:commit", [EXPLORE_LOCKS] = "lotus-locks", [EXPLORE_LOTUS] = "lotus",
    [EXPLORE_VIEW] = "view",
};

/* Of Lotus's rules those that two-phase commit's model has. */
#define COMMIT_OF_LOTUS                                                                            \
    (1u << LOTUS_RULE_PREPARE_READ | 1u << LOTUS_RULE_ABORT_ALL | 1u << LOTUS_RULE_ALL_PREPARED |  \
     1u << LOTUS_RULE_NO_TIMEOUT | 1u << LOTUS_RULE_OUTCOMES | 1u << LOTUS_RULE_EPOCH |            \
     1u << LOTUS_RULE_DOUBT_ALL | 1u << LOTUS_RULE_DOUBT | 1u << LOTUS_RULE_GONE |                 \
     1u << LOTUS_RULE_UNSURE | 1u << LOTUS_RULE_PROCESS)

const char *explore_engine(enum explore_family family)
{
    bool zeus = family == EXPLORE_OWN || family == EXPLORE_COMMIT;
    return zeus                       ? "zeus"
           : family == EXPLORE_GALENE ? "galene"
           : family == EXPLORE_LOTUS  ? "lotus"
                                      : NULL;
}

/* Rules of a zeus space: ownership's, then those of reliable commit. */
uint64_t explore_rules(enum explore_family family, uint64_t engine_rules_off,
                       uint64_t view_rules_off)
{
    switch (family) {
    case EXPLORE_OWN:
        return engine_rules_off & ((UINT64_C(1) << OWN_RULES) - 1);
    case EXPLORE_COMMIT:
        return engine_rules_off >> OWN_RULES;
    case EXPLORE_LOCKS: /* no mutant of a node */
        return 0;
    case EXPLORE_LOTUS:
        return engine_rules_off & COMMIT_OF_LOTUS;
    case EXPLORE_VIEW:
        return view_rules_off;
    case EXPLORE_HERMES:
    case EXPLORE_GALENE:
    case EXPLORE_FAMILIES:
        break;
    }
    return engine_rules_off;
}

static const struct explore_config *const tables[] = {
    explore_hermes_configs, explore_galene_configs, explore_own_configs, explore_commit_configs,
    explore_locks_configs,  explore_lotus_configs,  explore_view_configs};
#define TABLES (sizeof tables / sizeof tables[0])

uint32_t explore_count(void)
{
    uint32_t n = 0;
    while (explore_at(n) != NULL) {
        n++;
    }
    return n;
}

const struct explore_config *explore_at(uint32_t i)
{
    for (size_t t = 0; t < TABLES; t++) {
        for (const struct explore_config *c = tables[t]; c->name != NULL; c++) {
            if (i == 0) {
                return c;
            }
            i--;
        }
    }
    return NULL;
}

const struct explore_config *explore_find(const char *name)
{
    for (uint32_t i = 0; explore_at(i) != NULL; i++) {
        if (strcmp(explore_at(i)->name, name) == 0) {
            return explore_at(i);
        }
    }
    return NULL;
}

void explore_run(const struct explore_config *config, const struct explore_request *request,
                 struct search_result *result_out)
{
    config->run(config, request, result_out);
}
