#include "onesided/ways.h"

#include <stdlib.h>

bool ways_open(struct ways *w, uint64_t places)
{
    w->sets = places / WAYS == 0 ? 1 : places / WAYS;
    w->places = calloc(w->sets * WAYS, sizeof *w->places);
    return w->places != NULL;
}

void ways_close(struct ways *w)
{
    free(w->places);
    *w = (struct ways){.sets = 0};
}

static struct way *set_of(const struct ways *w, uint64_t id)
{
    uint64_t h = (id ^ id >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return &w->places[(h >> 20) % w->sets * WAYS];
}

struct way *ways_look(const struct ways *w, uint64_t id)
{
    struct way *set = set_of(w, id);
    for (uint32_t i = 0; i < WAYS; i++) {
        if (set[i].id == id + 1) {
            set[i].uses += set[i].uses < UINT32_MAX;
            return &set[i];
        }
    }
    return NULL;
}

struct way *ways_admit(struct ways *w, uint64_t id, bool dirty, struct way *left_out)
{
    struct way *set = set_of(w, id), *least = NULL;
    for (uint32_t i = 0; i < WAYS; i++) {
        if (set[i].id == 0) {
            least = &set[i];
            break;
        }
        if (!set[i].busy && (least == NULL || set[i].uses < least->uses)) {
            least = &set[i];
        }
    }
    if (least == NULL) {
        return NULL;
    }
    *left_out = *least;
    for (uint32_t i = 0; i < WAYS && least->id != 0; i++) {
        set[i].uses /= 2;
    }
    *least = (struct way){.id = id + 1, .uses = 1, .dirty = dirty};
    return least;
}
