/* The program: starts the subcommand that its first argument names. */
#include "tools/commands.h"

int main(int argc, char **argv)
{
    return commands_main(argc, argv);
}
