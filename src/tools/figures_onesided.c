#include "tools/figures_onesided.h"

#include "base/err.h"
#include "sim/cost_machine.h"

#define PAPER_KEYS 100000000u
#define KEYS 1000000u
#define QUICK_KEYS 20000u
#define WHOLE_PART 2u /* half of the keys stand for themselves ... */
#define HOT_PART 4u   /* ... another quarter for as many ranks as would be eight times theirs */
#define WARM_NS 3000000u
#define RUN_NS 20000000u
#define QUICK_WARM_NS 300000u
#define QUICK_RUN_NS 1000000u

const uint32_t lotus_writes_ppm[3] = {500000, 50000, 0};

struct keys_config lotus_keys(const struct figure_run *run)
{
    uint64_t n = run->options->quick ? QUICK_KEYS : KEYS;
    return (struct keys_config){
        .n = n,
        .exponent = LOTUS_EXPONENT,
        .scramble = true,
        .seed = run->options->seed,
        .fold = {.ranks = PAPER_KEYS,
                 .whole = n / WHOLE_PART,
                 .hot = n / WHOLE_PART + 8 * (n / HOT_PART),
                 .hot_keys = n / WHOLE_PART + n / HOT_PART},
    };
}

const char *one_sided_name(const struct one_sided *one)
{
    static const char *const names[ONE_POLICIES][2] = {
        [ONE_NO_WAIT] = {"one-sided no_wait", "one-sided no_wait, at once"},
        [ONE_WAIT_DIE] = {"one-sided wait_die", "one-sided wait_die, at once"}};
    if (one->small_nodes) {
        return one->policy == ONE_NO_WAIT ? "one-sided no_wait, 256 B"
                                          : "one-sided wait_die, 256 B";
    }
    return names[one->policy][one->overlap];
}

bool one_sided_play(struct figure_run *run, const struct one_sided *one,
                    struct cost_one_result *result_out)
{
    bool quick = run->options->quick;
    struct cost_one_setup setup = {
        .wire = cost_disaggregated.wire,
        .config = {.policy = one->policy,
                   .overlap = one->overlap,
                   .value_words = 2,
                   .value_more = 126},
        .computes = LOTUS_MACHINES,
        .memories = LOTUS_MACHINES,
        .threads = one->threads,
        .requests = one->requests,
        .writes_ppm = lotus_writes_ppm[one->workload],
        .keys = lotus_keys(run),
        .node_words = one->small_nodes ? 32 : 128,
        .cache = one->no_cache ? 0 : LOTUS_CACHE,
        .warm_ns = quick ? QUICK_WARM_NS : WARM_NS,
        .run_ns = quick ? QUICK_RUN_NS : RUN_NS,
        .seed = run->options->seed,
    };
    figure_progress(run, "%s, workload %c, %u threads, %u requests", one_sided_name(one),
                    "ABC"[one->workload], one -> threads, one -> requests);
    int err = cost_one_run(&setup, result_out);
    if (err != HK_OK && run->err == HK_OK) {
        run->err = err;
    }
    return err == HK_OK;
}
