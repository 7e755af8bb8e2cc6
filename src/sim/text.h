/* Text that grows: what a run tells about itself before anybody knows where it will be printed. */
#ifndef HORKOS_SIM_TEXT_H
#define HORKOS_SIM_TEXT_H

#include <stdarg.h>
#include <stddef.h>

struct text {
    char *at; /* NULL while empty; else closed by a NUL */
    size_t n;
    size_t capacity;
};

/* Appends as printf does. */
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_list(struct text *text, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));
/* "" while nothing was added. Good until the next change. */
const char *text_string(const struct text *text);
void text_deinit(struct text *text);

#endif
