/* The explorer on Galene: every state of the fast configurations, and, where rules can be switched
 * off, that it finds what they prevent. */
#include "engine/galene/galene.h"
#include "support/explore_family.h"

static const struct explore_miss misses[] = {
    {"galene-writes", GALENE_RULE_ALL_ACKS},      {"galene-writes", GALENE_RULE_ACK_ALWAYS},
    {"galene-writes", GALENE_RULE_LOSER_DONE},    {"galene-writes", GALENE_RULE_OVERTAKEN},
    {"galene-writes", GALENE_RULE_HIGHER},        {"galene-writes", GALENE_RULE_READ_VALID},
    {"galene-writes", GALENE_RULE_UPD_TS},        {"galene-rmws", GALENE_RULE_NACK},
    {"galene-write-rmw", GALENE_RULE_RMW_STEP},   {"galene-w-w-rmw", GALENE_RULE_NAMED},
    {"galene-again", GALENE_RULE_UPD_GENERATION}, {"galene-hot", GALENE_RULE_ENTER_ALL},
    {"galene-hot", GALENE_RULE_REPORT_IDLE},      {"galene-hot", GALENE_RULE_LEAVING},
    {"galene-hot", GALENE_RULE_REPORTED},         {"galene-hot", GALENE_RULE_DROPPED_ALL},
    {"galene-join", GALENE_RULE_REENTER},         {"galene-death", GALENE_RULE_RESCUE_VALID},
};

int main(void)
{
    static const struct explore_tested tested = {
        .family = EXPLORE_GALENE,
        .configs_min = 5,
        .rule_names = galene_rule_names,
        .misses = misses,
        .misses_n = sizeof misses / sizeof misses[0],
    };
    return explore_family_test(&tested);
}
