/* Turns what clients saw into histories and has them checked. */
#ifndef HORKOS_SIM_JUDGE_H
#define HORKOS_SIM_JUDGE_H

struct world;

/* Of a world whose run is over. A refused history is a violation; its operations on the refused key
 * are in result.refused then. */
void judge_histories(struct world *world);

#endif
