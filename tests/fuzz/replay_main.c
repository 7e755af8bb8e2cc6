/* Runs a fuzz target over the recorded inputs of its corpus, with any compiler and sanitizer.
 *
 * Usage: <target>_replay FOLDER. The inputs run in the order of their names, so that two runs do
 * the same. A folder that is missing or empty is a failure: a target that was fed nothing has
 * proved nothing. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Reads a whole file into memory of exactly its size, so that the address sanitizer sees a target
 * that reads past its input. The caller frees `*data_out`. */
static bool read_input(const char *path, uint8_t **data_out, size_t *size_out)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    struct stat status;
    size_t size = 0;
    bool done = false;

    if (file == NULL || fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
        goto out;
    size = (size_t)status.st_size;
    data = malloc(size);
    if (data == NULL && size > 0)
        goto out;
    if (size > 0 && fread(data, 1, size, file) != size)
        goto out;
    *data_out = data;
    *size_out = size;
    data = NULL;
    done = true;
out:
    free(data);
    if (file != NULL)
        (void)fclose(file);
    return done;
}

static bool run_input(const char *folder, const char *name)
{
    char path[4096];
    uint8_t *data = NULL;
    size_t size = 0;
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);

    if (length < 0 || (size_t)length >= sizeof(path) || !read_input(path, &data, &size)) {
        (void)fprintf(stderr, "cannot read %s/%s: %s\n", folder, name, strerror(errno));
        return false;
    }
    /* The name comes first, so that the last line before an abort says which input did it. */
    (void)printf("%s\n", path);
    (void)fflush(stdout);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return true;
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    bool all_read = true;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    int count = scandir(argv[1], &entries, is_input, alphasort);
    if (count <= 0) {
        (void)fprintf(stderr, "%s holds no input\n", argv[1]);
        free(entries);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        all_read = run_input(argv[1], entries[i]->d_name) && all_read;
        free(entries[i]);
    }
    free(entries);
    return all_read ? 0 : 1;
}
