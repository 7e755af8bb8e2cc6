/* A torture as a whole: what torture_command.c runs and torture_report.c tells of. */
#ifndef HORKOS_TOOLS_TORTURE_H
#define HORKOS_TOOLS_TORTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/torture_bank.h"
#include "tools/torture_cluster.h"
#include "tools/torture_crowd.h"
#include "tools/torture_faults.h"
#include "tools/torture_final.h"
#include "tools/torture_judge.h"
#include "tools/torture_keys.h"
#include "tools/torture_net.h"
#include "tools/torture_options.h"
#include "tools/torture_plan.h"
#include "tools/torture_slots.h"

enum torture_verdict {
    TORTURE_SOUND,
    TORTURE_VIOLATION,
    TORTURE_NOT_RUN, /* not started, not to the end: says nothing */
};

extern const char *const torture_verdict_names[3];

struct torture {
    struct torture_options options;
    struct torture_plan plan;
    struct torture_net net;
    struct torture_cluster cluster;
    struct torture_keys keys;
    struct torture_judge judge;
    struct torture_crowd crowd;
    struct torture_bank bank;
    struct torture_faults faults;
    struct torture_slots slots;
    struct torture_final final;
    bool final_begun;
    uint64_t began_us;   /* faults could begin; 0: not yet */
    uint64_t calm_us;    /* they had ended; 0: not yet */
    uint64_t served_us;  /* after that: all nodes served */
    uint64_t got_on_us;  /* ... and all clients got on */
    uint64_t watched_us; /* when the processes were last looked after */
    uint64_t judged, undecided, states;
    enum torture_verdict verdict;
    char what[32];  /* of a violation, in a word: "history", "replicas", ...; "" without one */
    char why[1600]; /* of a verdict other than sound */
    bool has_key;
    uint64_t key;
    char history_path[DEV_PATH_MAX]; /* where the history of that key is; "": nowhere */
};

void torture_report_text(const struct torture *torture, FILE *to);
bool torture_report_json(const struct torture *torture, FILE *to);
/* Writes the history of a key, by the beginnings of its operations. */
bool torture_report_history(const struct torture_key *key, const char *path);

#endif
