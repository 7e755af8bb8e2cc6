/* What the thesis says about its figures in numbers (chapter 4.5). Ratios are taken as it takes
 * them: "12 % better than" is 1.12. */
#include "tools/figures.h"

const struct claim claims[] = {
    {"4.5", "read-only, MReq/s (what the model is calibrated by)", "hermes", 0, NULL, 0, 985,
     CLAIM_VALUE},
    {"4.5", "hermes, 1 % writes, MReq/s", "hermes", 1, NULL, 0, 770, CLAIM_VALUE},
    {"4.5", "hermes, writes only, MReq/s", "hermes", 100, NULL, 0, 72, CLAIM_VALUE},
    {"4.5", "hermes over craq, 1 % writes", "hermes", 1, "craq", 1, 1.12, CLAIM_VALUE},
    {"4.5", "hermes over craq, 20 % writes", "hermes", 20, "craq", 20, 1.40, CLAIM_VALUE},
    {"4.5", "zab, 1 % writes, MReq/s", "zab", 1, NULL, 0, 172, CLAIM_VALUE},
    {"4.5", "zab, writes only, MReq/s", "zab", 100, NULL, 0, 16, CLAIM_VALUE},
    {"4.5", "hermes over zab, 1 % writes", "hermes", 1, "zab", 1, 4.5, CLAIM_VALUE},
    {"4.5", "hermes over zab, 20 % writes", "hermes", 20, "zab", 20, 3.4, CLAIM_VALUE},
    {"4.5", "hermes over zab, writes only", "hermes", 100, "zab", 100, 72.0 / 16, CLAIM_VALUE},
    {"4.6", "read-only, MReq/s (what the model is calibrated by)", "hermes", 0, NULL, 0, 4183,
     CLAIM_VALUE},
    {"4.6", "hermes, 1 % writes, MReq/s", "hermes", 1, NULL, 0, 1190, CLAIM_VALUE},
    {"4.7a", "hermes, 99th percentile at its peak, us", "= hermes 99th at peak", 0, NULL, 0, 69,
     CLAIM_VALUE},
    {"4.7a", "hermes, median at its peak, us", "= hermes median at peak", 0, NULL, 0, 1,
     CLAIM_VALUE},
    {"4.7a", "craq, 99th percentile at its peak, us", "= craq 99th at peak", 0, NULL, 0, 172,
     CLAIM_VALUE},
    {"4.7a", "craq over hermes, 99th percentiles at the peaks", "= craq 99th at peak", 0,
     "= hermes 99th at peak", 0, 172.0 / 69, CLAIM_VALUE},
    {"4.7a", "craq, 99th percentile at the lowest load, us", "= craq 99th at lowest load", 0, NULL,
     0, 42, CLAIM_VALUE},
    {"4.7a", "craq over hermes, 99th percentiles at the same throughput",
     "= craq over hermes, least 99th", 0, NULL, 0, 3.6, CLAIM_LEAST},
    {"4.7b", "hermes, median write at 1 % writes, us (the thesis: 29 to 42 over all ratios)",
     "hermes write median", 1, NULL, 0, 29, CLAIM_VALUE},
    {"4.7b", "hermes, 99th percentile of writes at 100 %, us (29 to 42)", "hermes write 99th", 100,
     NULL, 0, 42, CLAIM_VALUE},
    {"4.7b", "craq over hermes, median write at 1 % (3.9 to 5.9)", "craq write median", 1,
     "hermes write median", 1, 3.9, CLAIM_LEAST},
    {"4.7b", "craq over hermes, median write at 100 %", "craq write median", 100,
     "hermes write median", 100, 3.9, CLAIM_LEAST},
    {"4.7b", "craq, median write at 1 %, us (101 to 215 over all ratios)", "craq write median", 1,
     NULL, 0, 101, CLAIM_VALUE},
    {"4.7b", "craq, 99th percentile of writes at 100 %, us (138 to 330)", "craq write 99th", 100,
     NULL, 0, 330, CLAIM_VALUE},
    {"4.7c", "hermes, 99th percentile of writes at 100 %, us (up to 120)", "hermes write 99th", 100,
     NULL, 0, 120, CLAIM_VALUE},
    {"4.7c", "craq, median read at 50 % writes, us (up to 112 over all ratios)", "craq read median",
     50, NULL, 0, 112, CLAIM_VALUE},
    {"4.7c", "craq, 99th percentile of reads at 50 % writes, us (up to 386)", "craq read 99th", 50,
     NULL, 0, 386, CLAIM_VALUE},
    {"4.8", "hermes, 1 % writes, 7 replicas over 3 (almost linear)", "hermes 1%", 7, "hermes 1%", 3,
     7.0 / 3, CLAIM_VALUE},
    {"4.8", "craq, 20 % writes, 7 replicas over 5 (falls)", "craq 20%", 7, "craq 20%", 5, 1,
     CLAIM_MOST},
    {"4.8", "zab, 20 % writes, 7 replicas over 5 (almost halves)", "zab 20%", 7, "zab 20%", 5, 0.5,
     CLAIM_VALUE},
    {"4.9", "hermes over lockstep total order (for Derecho), 32 bytes", "hermes", 32,
     "zab-lockstep", 32, 10, CLAIM_VALUE},
    {"4.9", "hermes over lockstep total order (for Derecho), 1 KiB", "hermes", 1024, "zab-lockstep",
     1024, 3, CLAIM_VALUE},
    {"4.10", "5 % writes, 1 ms over none (negligible effect)", "hermes 5%", 1000, "hermes 5%", 0, 1,
     CLAIM_VALUE},
    {"4.12", "nothing is served after the crash, ms (the lease)", "= outage (ms)", 5, NULL, 0, 150,
     CLAIM_VALUE},
    {"4.12", "throughput after over before, 5 % writes (one of five is gone)",
     "= throughput after over before", 5, NULL, 0, 0.8, CLAIM_VALUE},
    {"4.13", "async over hermes, 1 % writes (slightly less)", "hermes-async", 1, "hermes", 1, 1,
     CLAIM_VALUE},
    {"4.13", "async over hermes, 10 % writes (no difference)", "hermes-async", 10, "hermes", 10, 1,
     CLAIM_VALUE},
    {"4.13", "async over hermes, 50 % writes (no difference)", "hermes-async", 50, "hermes", 50, 1,
     CLAIM_VALUE},
    {"4.13", "async over hermes, 1 % writes, 200 in flight a worker", "hermes-async, 200 in flight",
     1, "hermes, 200 in flight", 1, 1, CLAIM_VALUE},
    {"4.14", "async, average read at full load, us", "= hermes-async average at peak", 0, NULL, 0,
     50, CLAIM_VALUE},
    {NULL, NULL, NULL, 0, NULL, 0, 0, CLAIM_VALUE},
};

bool claim_ours(const struct claim *claim, const struct figure_run *run, double *ours_out)
{
    double over = 1;
    if (!figure_find(run, claim->series, claim->x, ours_out) ||
        (claim->over != NULL &&
         (!figure_find(run, claim->over, claim->over_x, &over) || over <= 0))) {
        return false;
    }
    *ours_out /= over;
    return true;
}
