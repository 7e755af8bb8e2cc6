/* The analytical model's curves in thesis figures 3.8 to 3.13: each adds its points to a figure. */
#ifndef HORKOS_TOOLS_FIGURES_GALENE_H
#define HORKOS_TOOLS_FIGURES_GALENE_H

#include "tools/figures.h"

void galene_curves_read_only(struct figure_run *run);
void galene_curves_breakdown(struct figure_run *run);
void galene_curves_writes(struct figure_run *run);
void galene_curves_traffic(struct figure_run *run);
void galene_curves_sizes(struct figure_run *run);
void galene_curves_packets(struct figure_run *run);
void galene_curves_coalesced(struct figure_run *run);

#endif
