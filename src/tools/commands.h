/* The subcommands of the program. Each takes its own arguments, its name included, and returns the
 * program's exit status: 0 all is well, 1 what was asked for failed, 2 it was asked wrongly. */
#ifndef HORKOS_TOOLS_COMMANDS_H
#define HORKOS_TOOLS_COMMANDS_H

enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2, /* or, for those that ask a node, nobody answers */
};

struct command {
    const char *name;
    const char *summary; /* one line for --help */
    int (*run)(int argc, char **argv);
};

/* Ended by an entry without a name. */
extern const struct command commands[];

/* Finds the command that argv[1] names and runs it; sees to --help and --version. */
int commands_main(int argc, char **argv);

int server_command(int argc, char **argv);
int dev_command(int argc, char **argv);
int status_command(int argc, char **argv);
int recover_command(int argc, char **argv);
int slots_command(int argc, char **argv);
int balance_command(int argc, char **argv);
int sim_command(int argc, char **argv);
int explore_command(int argc, char **argv);
int torture_command(int argc, char **argv);
int bench_command(int argc, char **argv);
int figures_command(int argc, char **argv);
int hotset_command(int argc, char **argv);

#endif
