/* The views and generations that an exploration has met, each once, by number: a state names a view
 * by 2 bytes instead of holding 1600. Numbers follow the order in which views are met, which is the
 * same in every run. */
#ifndef HORKOS_EXPLORE_VIEW_BOOK_H
#define HORKOS_EXPLORE_VIEW_BOOK_H

#include <stdint.h>

#include "view/view.h"

#define VIEW_BOOK_VIEWS_MAX 4096u
#define VIEW_BOOK_GENERATIONS_MAX 255u

struct view_book {
    uint32_t views;
    uint32_t generations;
    uint64_t hash[VIEW_BOOK_VIEWS_MAX];
    uint64_t generation[VIEW_BOOK_GENERATIONS_MAX];
    struct view view[VIEW_BOOK_VIEWS_MAX];
};

/* Number 0 is no view, and generation 0. */
void view_book_init(struct view_book *book);
/* The number of the view; a new one if it was not met. Asserts that there is room: explorations are
 * bounded so that thousands of views cannot occur. hint: a number that it may well be. */
uint16_t view_book_number(struct view_book *book, const struct view *view, uint16_t hint);
uint8_t view_book_generation(struct view_book *book, uint64_t generation);

static inline const struct view *view_book_view(const struct view_book *book, uint16_t number)
{
    return &book->view[number];
}

#endif
