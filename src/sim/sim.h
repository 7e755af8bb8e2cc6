/* The deterministic simulator: one thread, one seed, virtual time and network, the real node. A run
 * is a function of its configuration and its seed and of nothing else: no clock, address or
 * uninitialised byte decides anything, so the same seed gives the same run, byte for byte. */
#ifndef HORKOS_SIM_SIM_H
#define HORKOS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "check/history.h"
#include "sim/text.h"

#define SIM_NODES_MAX 9u
#define SIM_WORKERS_MAX 3u
#define SIM_PHRASES_MAX 160u
#define SIM_PLAN_MAX 20u /* entries of a fault plan: sim_config.plan_skip has a bit for each */

enum sim_fault {
    /* Weather: befalls single frames, with probabilities that the seed draws. */
    SIM_FAULT_LOSS,
    SIM_FAULT_DUPLICATE,
    SIM_FAULT_REORDER,
    SIM_FAULT_DELAY,   /* spikes, up to longer than a lease */
    SIM_FAULT_CORRUPT, /* bits flipped, frames cut short or lengthened */
    /* Timed: entries of the fault plan. */
    SIM_FAULT_STORM,     /* for a while most frames are lost or late */
    SIM_FAULT_ONEWAY,    /* one direction of some links is cut */
    SIM_FAULT_PARTITION, /* two sides that do not hear each other */
    SIM_FAULT_BRIDGE,    /* two nodes that hear all others but not each other */
    SIM_FAULT_CRASH,     /* the process is killed; later a new one starts with amnesia */
    SIM_FAULT_PAUSE,     /* the process stands still, often in mid-operation */
    SIM_FAULT_STALL,     /* one worker of a process stands still */
    SIM_FAULT_SLOW,      /* every poll of a node takes long */
    SIM_FAULT_LEAVE,     /* the process leaves as on SIGTERM; later a new one starts */
    SIM_FAULT_ZOMBIE,   /* a process stands still, another one takes its node over, and then the old
                            one goes on */
    SIM_FAULT_LATE,     /* a configured node starts late */
    SIM_FAULT_CLOCK,    /* clocks run at different rates and step, within the margin of the lease;
                            calendars are off and jump */
    SIM_FAULT_DRIFT,    /* the same beyond the margin: only where reads need no lease (async) */
    SIM_FAULT_RESIZE,   /* the operator changes the configured set: nodes come and go for good */
    SIM_FAULT_MAJORITY, /* a majority is killed at once; the operator recovers the rest */
    SIM_FAULT_BLACKOUT, /* all nodes are killed; the operator begins again, empty */
    SIM_FAULT_VERSIONS, /* nodes of different versions of the frames; restarts upgrade them */
    SIM_FAULTS
};
extern const char *const sim_fault_names[SIM_FAULTS];
#define SIM_FAULTS_ALL ((1u << SIM_FAULTS) - 1u)

enum sim_choice {
    SIM_DRAWN, /* by the seed */
    SIM_ON,
    SIM_OFF,
};

struct sim_config {
    const char *engine; /* as engines_find knows it; NULL: hermes */
    uint32_t nodes;     /* 1 .. SIM_NODES_MAX */
    uint32_t workers;   /* of each node, 1 .. SIM_WORKERS_MAX; 0: drawn */
    uint32_t ops;       /* successful operations wanted of a run; 0: drawn, 300 .. 500 */
    uint32_t faults;    /* bits of enum sim_fault that may happen; another set is another run */
    /* For shrinking: what of that which the seed draws is left out, so that all else is drawn as
     * without it. Entries of the fault plan by their index, as a set of bits, and kinds (weather,
     * clocks, versions, and all entries of that kind). */
    uint64_t plan_skip;
    uint32_t faults_skip;
    uint32_t clients_max; /* 0: as many as are drawn */
    uint32_t keys_max;    /* that clients share; 0: as many as are drawn */
    uint64_t until;  /* the run ends before this step, and its history is checked; 0: it goes on */
    uint32_t policy; /* lotus: enum lock_policy and 1; 0: drawn */
    enum sim_choice o3;    /* [H] O3: ACKs to all. Both only of hermes */
    enum sim_choice async; /* [H] 4.3.6: a majority confirms reads */
    bool lanes;            /* for tests: an engine that does without order gets it, and so does
                              not need to send anything again */
    uint32_t death;        /* a case of sim/death.h; 0: none */
    bool near;             /* lotus: homes have little room for values (lotus_config.near_max) */
    bool tamper;           /* for tests: one read is recorded wrongly, which must be noticed */
    bool waver;            /* for tests: the run has another hash than it should */
    bool trade;  /* for tests: an engine without transactions gets traders, whose deals are single
                   operations */
    FILE *trace; /* everything that happens, for people; NULL: nothing */
    /* HK_MUTANTS builds only: bits of enum view_rule, node_rule, and of the engine's rules. */
    uint64_t view_rules_off;
    uint64_t node_rules_off;
    uint64_t engine_rules_off;
    uint64_t flips_on; /* ... and operators of base/flips.h */
};

enum sim_verdict {
    SIM_SOUND,
    SIM_VIOLATION, /* result.report says what was broken */
    SIM_STRANDED,  /* crashes and drops together took a majority away: nothing can go on, rightly */
    SIM_TOO_HARD,  /* a checker reached its bound: says nothing */
    SIM_VERDICTS
};
extern const char *const sim_verdict_names[SIM_VERDICTS];

struct sim_stats {
    uint64_t virtual_us;
    uint64_t ops;           /* operations that ended, in whatever way, but for extra load */
    uint64_t ops_ok;        /* answered, and in the history */
    uint64_t ops_failed;    /* certainly without effect */
    uint64_t ops_unknown;   /* the client never learned the outcome */
    uint64_t ops_extra;     /* besides: of these only the form of the answer was checked */
    uint64_t reads_ok;      /* part of ops_ok */
    uint64_t deals;         /* transactions that ended, in whatever way */
    uint64_t deals_ok;      /* committed */
    uint64_t deals_aborted; /* certainly without effect */
    uint64_t deals_unknown;
    uint64_t deals_spoken; /* of those that committed: said as commands of the Redis protocol */
    uint64_t audits;       /* of the bank */
    uint64_t ranges;       /* that committed deals have asked for */
    uint64_t tries, tries_again, tries_most; /* lotus: of transactions; of these, after a refused
                                                one; of one transaction */
    uint64_t deaths;                         /* that sim_config.death asked for */
    uint64_t polls;
    uint64_t frames;   /* sent */
    uint64_t messages; /* inside them */
    uint64_t bytes;
    uint64_t views;                    /* decided views that somebody held */
    uint64_t view_changes;             /* of these, those that followed another one */
    uint64_t incarnations;             /* processes started */
    uint64_t wipes;                    /* processes that found themselves dropped and came back */
    uint64_t states;                   /* visited by the checkers */
    uint64_t faults[SIM_FAULTS];       /* how often each befell somebody */
    uint64_t faults_skipped;           /* planned, but would have taken the majority away */
    uint64_t phrases[SIM_PHRASES_MAX]; /* how often clients began each (sim/phrase.h) */
    uint64_t fault_kinds;              /* how many kinds befell somebody in a run */
};

struct sim_result {
    enum sim_verdict verdict;
    uint64_t hash;          /* of everything that happened: equal for equal runs */
    struct text plan;       /* what the seed drew: parameters and fault plan */
    const char *rule;       /* of a violation: the words that all violations of its kind share */
    uint64_t steps;         /* that happened */
    uint32_t plan_n;        /* entries of the fault plan, those left out included */
    uint32_t drawn;         /* kinds of fault that are in force: bits of enum sim_fault */
    struct text report;     /* what is wrong; empty if nothing is */
    struct history refused; /* a history that is not linearizable: the operations on its key */
    struct sim_stats stats;
};

/* Runs one seed. result_out is overwritten and must go through sim_result_deinit. A failed
 * assertion of the code under test aborts the process. */
void sim_run(const struct sim_config *config, uint64_t seed, struct sim_result *result_out);
void sim_result_deinit(struct sim_result *result);

#endif
