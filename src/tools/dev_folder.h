/* The folder of a cluster that `horkos dev` runs: where its files are, and what is done with them
 * as files. Errors are printed where they happen: the functions return whether it worked. */
#ifndef HORKOS_TOOLS_DEV_FOLDER_H
#define HORKOS_TOOLS_DEV_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/nodeset.h"

#define DEV_NODES_MAX 16u
#define DEV_DIR_MAX 384u
#define DEV_PATH_MAX (DEV_DIR_MAX + 64u)

/* The folder that is used when none is named. Either may be NULL or "". False: too long. */
bool dev_default_dir(const char *state_home, const char *home, char dir_out[DEV_DIR_MAX]);

/* The folder with all that lead to it. Paths in configuration files need the absolute name, so dir
 * is replaced by that. */
bool dev_folder_make(char dir[DEV_DIR_MAX]);
/* The same for a folder that must be there. */
bool dev_folder_find(char dir[DEV_DIR_MAX]);

/* "DIR/NAME", and "DIR/node-N.KIND" with kind conf, log, pid or state. */
void dev_path(const char *dir, const char *name, char path_out[DEV_PATH_MAX]);
void dev_node_path(const char *dir, uint32_t node, const char *kind, char path_out[DEV_PATH_MAX]);

/* One `horkos dev` at a time changes what runs in a folder. -1: another one does, or an error; both
 * were printed. Closing the descriptor ends it; no child inherits it. */
int dev_folder_lock(const char *dir);

/* The nodes for which there is a file of this kind. */
nodeset dev_folder_nodes(const char *dir, const char *kind);

/* Writes a whole file, which others see either old or new. */
bool dev_write_file(const char *path, const char *text, size_t n, uint32_t mode);
/* A new key for the cluster, readable by its owner alone. */
bool dev_write_key(const char *path);
/* Removes what the cluster left that lived here before; its logs become node-N.log.old. */
bool dev_folder_clear(const char *dir);

/* The last lines of a file, each behind `indent`; nothing if there is none. */
void dev_print_tail(const char *path, uint32_t lines, const char *indent, FILE *to);

#endif
