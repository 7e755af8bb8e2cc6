/* The one thing a node keeps on disk: {generation, epoch} of the last view that it was told to keep
 * (docs/protocols/view.md, rule 5), so that a cluster of which everything was lost does not quietly
 * start empty. Written to a new file, fsync, rename, fsync of the folder. */
#ifndef HORKOS_SERVER_STATE_FILE_H
#define HORKOS_SERVER_STATE_FILE_H

#include <stdint.h>

/* 0, 0 when there is no file. HK_ERR_CORRUPT: the file is there and makes no sense. HK_ERR_IO. */
int state_file_read(const char *path, uint64_t *generation_out, uint32_t *epoch_out)
    __attribute__((warn_unused_result));
/* HK_ERR_IO: errno says why. */
int state_file_write(const char *path, uint64_t generation, uint32_t epoch)
    __attribute__((warn_unused_result));
/* Locks path + ".lock" for the life of the process: two processes never run one node's state.
 * HK_ERR_FULL: another process has it. */
int state_file_lock(const char *path, int *fd_out) __attribute__((warn_unused_result));

#endif
