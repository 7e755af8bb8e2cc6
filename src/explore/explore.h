/* The configurations that `horkos explore` knows: models of the real protocol code (Hermes, Galene,
 * Zeus, Lotus's locks and commit, the view machines) with bounds, each searched breadth-first until
 * every reachable state was visited, a violation was found or a bound was reached. docs/EXPLORER.md
 * describes the models. */
#ifndef HORKOS_EXPLORE_EXPLORE_H
#define HORKOS_EXPLORE_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "explore/search.h"

enum explore_family {
    EXPLORE_HERMES,
    EXPLORE_GALENE,
    EXPLORE_OWN,
    EXPLORE_COMMIT,
    EXPLORE_LOCKS,
    EXPLORE_LOTUS,
    EXPLORE_VIEW,
    EXPLORE_FAMILIES
};
/* As --engine names them: "hermes", "galene", "zeus:own", "zeus:commit", "lotus-locks",
 * "lotus", "view". */
extern const char *const explore_family_names[EXPLORE_FAMILIES];
/* The engine whose code it runs; NULL: none's, or hermes. */
const char *explore_engine(enum explore_family family);
/* Its bits of what is switched off in a node (sim/mutants.h). */
uint64_t explore_rules(enum explore_family family, uint64_t engine_rules_off,
                       uint64_t view_rules_off);

struct explore_request {
    uint64_t rules_off; /* HK_MUTANTS builds only: bits of the family's enum of rules */
    bool altered; /* HK_MUTANTS builds: the code was changed in some other way, so that a model
                           may not skip what unchanged code would ignore */
    struct search_bounds bounds;
    void (*progress)(const struct search_result *so_far, void *context); /* may be NULL */
    void *context;
};

struct explore_config {
    const char *name;
    const char *what;  /* one line for people */
    uint8_t family;    /* enum explore_family */
    bool fast;         /* ends within a second or so: part of every test run */
    const void *setup; /* the model's own */
    /* Prints the model's bounds: operations, epochs, ... in a few words on one line. */
    void (*print)(const struct explore_config *config, FILE *to);
    void (*run)(const struct explore_config *config, const struct explore_request *request,
                struct search_result *result_out);
};

/* All configurations, those of one family together. */
uint32_t explore_count(void);
/* NULL behind the last. */
const struct explore_config *explore_at(uint32_t i);
/* NULL if there is none of that name. */
const struct explore_config *explore_find(const char *name);
/* Searches it. bounds of the request that are 0 stay open. */
void explore_run(const struct explore_config *config, const struct explore_request *request,
                 struct search_result *result_out);

/* The tables, ended by an entry without a name. */
extern const struct explore_config explore_hermes_configs[];
extern const struct explore_config explore_galene_configs[];
extern const struct explore_config explore_own_configs[];
extern const struct explore_config explore_commit_configs[];
extern const struct explore_config explore_locks_configs[];
extern const struct explore_config explore_lotus_configs[];
extern const struct explore_config explore_view_configs[];

#endif
