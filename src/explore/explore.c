#include "explore/explore.h"

#include <string.h>

const char *const explore_family_names[EXPLORE_FAMILIES] = {
    [EXPLORE_HERMES] = "hermes",
    [EXPLORE_GALENE] = "galene",
    [EXPLORE_VIEW] = "view",
};

static const struct explore_config *const tables[] = {explore_hermes_configs,
                                                      explore_galene_configs, explore_view_configs};
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
