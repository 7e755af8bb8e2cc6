#include "node/engines.h"

#include <string.h>

#include "engine/galene/messages.h"
#include "node/node.h"

static const struct engine_ops *const engines[] = {&hermes_ops, &craq_ops, &zab_ops,
                                                   &galene_ops, &zeus_ops, &lotus_ops};

/* Several times what a move takes: so that who is refused does not ask on and on. */
#define ZEUS_BACKOFF_US 500u

#define ENGINES (sizeof engines / sizeof engines[0])

const struct engine_ops *engines_at(uint32_t i)
{
    return i < ENGINES ? engines[i] : NULL;
}

const struct engine_ops *engines_find(const char *name)
{
    for (uint32_t i = 0; i < ENGINES; i++) {
        if (strcmp(engines[i]->name, name) == 0) {
            return engines[i];
        }
    }
    return NULL;
}

const char *engines_homed_kind(uint32_t kind)
{
    if (kind == HOMED_KINDS - 1) {
        return "slots"; /* all of the slot map's */
    }
    return kind > 0 && kind < GALENE_KEY_END ? galene_kind_names[kind] : NULL;
}

const char *engines_owned_kind(uint32_t kind)
{
    if (kind >= COMMIT_MSG_INV && kind < COMMIT_MSG_END) {
        return commit_kind_names[kind - COMMIT_MSG_INV];
    }
    return kind > 0 && kind < OWN_MSG_END ? own_kind_names[kind] : NULL;
}

void engines_configure(const struct engine_ops *ops, const struct engines_options *options,
                       union engines_config *config_out)
{
    memset(config_out, 0, sizeof *config_out);
    if (ops == &hermes_ops) {
        config_out->hermes = (struct hermes_config){
            .mlt_us = options->mlt_us,
            .grace_us = options->grace_us,
            .ack_to_all = options->ack_to_all,
        };
    } else if (ops == &zab_ops) {
        config_out->zab = (struct zab_config){.lockstep = options->lockstep};
    } else if (ops == &craq_ops) {
        config_out->craq = (struct craq_config){
            .retry_us = options->mlt_us / 8u + 1u,
            .give_up_us = options->mlt_us * 1000u,
        };
    } else if (ops == &galene_ops) {
        config_out->galene = (struct galene_config){
            .retry_us = options->mlt_us / 4u + 1u,
            .rescue_us = options->mlt_us * 4u + 1u,
        };
    } else if (ops == &zeus_ops) {
        config_out->zeus = (struct zeus_config){
            .own = {.degree = options->degree, .backoff_us = ZEUS_BACKOFF_US},
        };
    } else if (ops == &occ_ops) {
        config_out->occ = (struct occ_config){.degree = options->degree};
    } else if (ops == &lotus_ops) {
        config_out->lotus = options->lotus;
    }
}
