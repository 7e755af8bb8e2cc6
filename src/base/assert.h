/* Assertions for errors of the programmer. HK_ASSERT stays on in production; HK_CHECK, for what
 * is too costly there, is on in debug and sanitizer builds (HK_DEBUG). Bytes from clients and
 * peers are validated, never asserted. */
#ifndef HORKOS_BASE_ASSERT_H
#define HORKOS_BASE_ASSERT_H

/* Prints the place and the condition to standard error and aborts. */
_Noreturn void hk_assert_failed(const char *file, int line, const char *condition);

#define HK_ASSERT(c) ((c) ? (void)0 : hk_assert_failed(__FILE__, __LINE__, #c))

#ifdef HK_DEBUG
#define HK_CHECK(c) HK_ASSERT(c)
#else
#define HK_CHECK(c) ((void)sizeof(!(c)))
#endif

#endif
