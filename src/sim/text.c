#include "sim/text.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

static void text_reserve(struct text *text, size_t more)
{
    if (text->capacity - text->n > more) {
        return;
    }
    size_t capacity = text->capacity == 0 ? 256 : text->capacity;
    while (capacity - text->n <= more) {
        capacity *= 2;
    }
    text->at = realloc(text->at, capacity);
    HK_ASSERT(text->at != NULL);
    text->capacity = capacity;
}

void text_add_list(struct text *text, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    HK_ASSERT(length >= 0);
    text_reserve(text, (size_t)length);
    (void)vsnprintf(text->at + text->n, text->capacity - text->n, format, list);
    text->n += (size_t)length;
}

void text_add(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    text_add_list(text, format, list);
    va_end(list);
}

const char *text_string(const struct text *text)
{
    return text->at == NULL ? "" : text->at;
}

void text_deinit(struct text *text)
{
    free(text->at);
    *text = (struct text){0};
}
