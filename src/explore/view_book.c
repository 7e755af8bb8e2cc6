#include "explore/view_book.h"

#include <string.h>

#include "base/assert.h"

void view_book_init(struct view_book *book)
{
    memset(book, 0, sizeof *book);
    book->views = 1;
    book->generations = 1;
}

/* Fowler, Noll and Vo's, over words: it only spares comparing. */
static uint64_t view_hash(const struct view *view)
{
    uint64_t words[sizeof *view / sizeof(uint64_t)];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    memcpy(words, view, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint16_t view_book_number(struct view_book *book, const struct view *view, uint16_t hint)
{
    if (view->epoch == 0) {
        return 0;
    }
    if (memcmp(view, &book->view[hint], sizeof *view) == 0) {
        return hint;
    }
    uint64_t hash = view_hash(view);
    for (uint32_t i = 1; i < book->views; i++) {
        if (book->hash[i] == hash && memcmp(view, &book->view[i], sizeof *view) == 0) {
            return (uint16_t)i;
        }
    }
    HK_ASSERT(book->views < VIEW_BOOK_VIEWS_MAX);
    book->hash[book->views] = hash;
    book->view[book->views] = *view;
    return (uint16_t)book->views++;
}

uint8_t view_book_generation(struct view_book *book, uint64_t generation)
{
    for (uint32_t i = 0; i < book->generations; i++) {
        if (book->generation[i] == generation) {
            return (uint8_t)i;
        }
    }
    HK_ASSERT(book->generations < VIEW_BOOK_GENERATIONS_MAX);
    book->generation[book->generations] = generation;
    return (uint8_t)book->generations++;
}
