/* Byte slices, and integers in the little-endian order of frames and files. */
#ifndef HORKOS_BASE_BYTES_H
#define HORKOS_BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes that somebody else owns; at may be NULL when n is 0. */
struct bytes {
    const uint8_t *at;
    uint32_t n;
};

static inline struct bytes bytes_of(const void *at, uint32_t n)
{
    return (struct bytes){(const uint8_t *)at, n};
}

/* A part of what lies at base, which may be NULL if that is nothing: NULL must not be moved. */
static inline struct bytes bytes_within(const void *base, size_t at, uint32_t n)
{
    return bytes_of(n > 0 ? (const uint8_t *)base + at : NULL, n);
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

/* Less than 0, 0, or more: as memcmp, and what another begins with is less. */
static inline int bytes_compare(struct bytes a, struct bytes b)
{
    uint32_t n = a.n < b.n ? a.n : b.n;
    int order = n == 0 ? 0 : memcmp(a.at, b.at, n);
    if (order != 0) {
        return order;
    }
    return a.n < b.n ? -1 : a.n > b.n;
}

static inline void put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
    put_u16(p, (uint16_t)v);
    put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void put_u64(uint8_t *p, uint64_t v)
{
    put_u32(p, (uint32_t)v);
    put_u32(p + 4, (uint32_t)(v >> 32));
}

static inline uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | (uint16_t)p[1] << 8);
}

static inline uint32_t get_u32(const uint8_t *p)
{
    return get_u16(p) | (uint32_t)get_u16(p + 2) << 16;
}

static inline uint64_t get_u64(const uint8_t *p)
{
    return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

#endif
