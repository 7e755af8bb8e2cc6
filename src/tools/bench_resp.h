/* `horkos bench --resp`: load for servers that speak the Redis protocol. */
#ifndef HORKOS_TOOLS_BENCH_RESP_H
#define HORKOS_TOOLS_BENCH_RESP_H

#include <stdbool.h>

/* Whether the command line asks for it: --resp is among the options. */
bool bench_resp_asked(int argc, char **argv);
/* The whole of it, from the options to what is printed; the program's exit status. */
int bench_resp_command(int argc, char **argv);

#endif
