#include "tools/dev_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/file.h"

#define KEY_BYTES 32u
#define TAIL_BYTES 8192u

static const char *const kinds[] = {"conf", "log", "pid", "state"};

bool dev_default_dir(const char *state_home, const char *home, char dir_out[DEV_DIR_MAX])
{
    int n = 0;
    if (state_home != NULL && state_home[0] == '/') {
        n = snprintf(dir_out, DEV_DIR_MAX, "%s/horkos-dev", state_home);
    } else if (home != NULL && home[0] == '/') {
        n = snprintf(dir_out, DEV_DIR_MAX, "%s/.local/state/horkos-dev", home);
    } else {
        n = snprintf(dir_out, DEV_DIR_MAX, "horkos-dev");
    }
    return n < (int)DEV_DIR_MAX;
}

static bool complain(const char *path)
{
    fprintf(stderr, "horkos dev: %s: %s\n", path, strerror(errno));
    return false;
}

bool dev_folder_find(char dir[DEV_DIR_MAX])
{
    char *full = realpath(dir, NULL);
    if (full == NULL) {
        return complain(dir);
    }
    bool fits = strlen(full) < DEV_DIR_MAX;
    if (fits) {
        memcpy(dir, full, strlen(full) + 1);
    } else {
        fprintf(stderr, "horkos dev: %s: the path is too long\n", full);
    }
    free(full);
    return fits;
}

bool dev_folder_make(char dir[DEV_DIR_MAX])
{
    char part[DEV_DIR_MAX];
    size_t n = strlen(dir);
    for (size_t i = 1; i <= n; i++) {
        if (dir[i] != '/' && dir[i] != '\0') {
            continue;
        }
        memcpy(part, dir, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return complain(part);
        }
    }
    return dev_folder_find(dir);
}

void dev_path(const char *dir, const char *name, char path_out[DEV_PATH_MAX])
{
    snprintf(path_out, DEV_PATH_MAX, "%s/%s", dir, name);
}

void dev_node_path(const char *dir, uint32_t node, const char *kind, char path_out[DEV_PATH_MAX])
{
    snprintf(path_out, DEV_PATH_MAX, "%s/node-%u.%s", dir, node, kind);
}

int dev_folder_lock(const char *dir)
{
    char path[DEV_PATH_MAX];
    dev_path(dir, "dev.lock", path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        complain(path);
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            fprintf(stderr,
                    "horkos dev: another horkos dev is busy with %s; try again when it is "
                    "done\n",
                    dir);
        } else {
            complain(path);
        }
        close(fd);
        return -1;
    }
    return fd;
}

/* The node of a file "node-N.KIND", or 0. */
static uint32_t node_of(const char *name, const char *kind)
{
    static const char prefix[] = "node-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return 0;
    }
    uint32_t node = 0;
    const char *c = name + sizeof prefix - 1;
    for (; *c >= '0' && *c <= '9' && node <= DEV_NODES_MAX; c++) {
        node = node * 10 + (uint32_t)(*c - '0');
    }
    bool is = *c == '.' && strcmp(c + 1, kind) == 0 && node >= 1 && node <= DEV_NODES_MAX;
    return is ? node : 0;
}

nodeset dev_folder_nodes(const char *dir, const char *kind)
{
    nodeset nodes = 0;
    DIR *folder = opendir(dir);
    if (folder == NULL) {
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        uint32_t node = node_of(entry->d_name, kind);
        nodes |= node == 0 ? 0 : nodeset_of((uint8_t)node);
    }
    closedir(folder);
    return nodes;
}

bool dev_write_file(const char *path, const char *text, size_t n, uint32_t mode)
{
    char fresh[DEV_PATH_MAX + 8];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    (void)unlink(fresh);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        return complain(fresh);
    }
    bool written = file_write_all(fd, text, n);
    written = close(fd) == 0 && written;
    if (!written || rename(fresh, path) != 0) {
        complain(path);
        (void)unlink(fresh);
        return false;
    }
    return true;
}

bool dev_write_key(const char *path)
{
    uint8_t key[KEY_BYTES];
    char text[2 * KEY_BYTES + 2];
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key) {
        return complain("getrandom");
    }
    for (uint32_t i = 0; i < KEY_BYTES; i++) {
        snprintf(text + 2 * (size_t)i, 3, "%02x", key[i]);
    }
    text[2 * KEY_BYTES] = '\n';
    bool written = dev_write_file(path, text, 2 * KEY_BYTES + 1, 0600);
    explicit_bzero(key, sizeof key);
    explicit_bzero(text, sizeof text);
    return written;
}

static bool clear_one(const char *dir, uint32_t node, const char *kind)
{
    char path[DEV_PATH_MAX];
    dev_node_path(dir, node, kind, path);
    int failed = 0;
    if (strcmp(kind, "log") == 0) {
        char old[DEV_PATH_MAX];
        dev_node_path(dir, node, "log.old", old);
        failed = rename(path, old);
    } else {
        failed = unlink(path);
    }
    return failed == 0 || errno == ENOENT || complain(path);
}

bool dev_folder_clear(const char *dir)
{
    for (uint32_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (nodeset left = dev_folder_nodes(dir, kinds[k]); left != 0; left &= left - 1) {
            if (!clear_one(dir, nodeset_first(left), kinds[k])) {
                return false;
            }
        }
    }
    return true;
}

void dev_print_tail(const char *path, uint32_t lines, const char *indent, FILE *to)
{
    char text[TAIL_BYTES + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)TAIL_BYTES ? size - (off_t)TAIL_BYTES : 0;
    ssize_t n = size < 0 ? -1 : pread(fd, text, TAIL_BYTES, from);
    if (fd >= 0) {
        close(fd);
    }
    if (n <= 0) {
        return;
    }
    text[n] = '\0';
    size_t start = (size_t)n;
    for (uint32_t found = 0; start > 0; start--) {
        if (text[start - 1] == '\n' && start != (size_t)n && ++found == lines) {
            break;
        }
    }
    for (char *line = text + start; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        fprintf(to, "%s%.*s\n", indent, (int)length, line);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
}
