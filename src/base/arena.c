#include "base/arena.h"

#include "base/huge_pages.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    // With its head, the first chunk is no larger than 1,032 bytes: malloc keeps freed blocks of up
    // to this size for the thread, so a small arena costs no search.
    CHUNK_MIN_BYTES = 1008,
    CHUNK_MAX_BYTES = 16 << 20,
    CHUNK_KEPT_BYTES = 1 << 20,
    LARGE_BYTES = 64 << 10, // an allocation of at least this size gets a chunk of its own
    ALIGN = 16
};

struct arena_chunk {
    struct arena_chunk *next;
    size_t size;
    _Alignas(ALIGN) char data[];
};

void arena_free(struct arena *a)
{
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (struct arena){.limit_bytes = a->limit_bytes};
}

void arena_reset(struct arena *a)
{
    struct arena_chunk *keep = a->chunks;
    if (!keep)
        return;
    if (keep->size > CHUNK_KEPT_BYTES) {
        arena_free(a);
        return;
    }
    for (struct arena_chunk *c = keep->next, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    keep->next = NULL;
    a->at = keep->data;
    a->end = keep->data + keep->size;
    a->used_bytes = sizeof *keep + keep->size;
}

static void *grow(struct arena *a, size_t size)
{
    // Each chunk is twice as large as the one before, so a large arena costs few system
    // allocations, and a small arena takes little memory.
    bool large = size >= LARGE_BYTES;
    size_t chunk = large ? size : a->chunk_bytes ? a->chunk_bytes * 2 : CHUNK_MIN_BYTES;
    if (!large && chunk > CHUNK_MAX_BYTES)
        chunk = CHUNK_MAX_BYTES;
    if (a->limit_bytes) {
        size_t left = a->limit_bytes > a->used_bytes ? a->limit_bytes - a->used_bytes : 0;
        if (left < sizeof(struct arena_chunk) || size > left - sizeof(struct arena_chunk))
            return NULL;
        if (chunk > left - sizeof(struct arena_chunk))
            chunk = (left - sizeof(struct arena_chunk)) & ~(size_t)(ALIGN - 1);
    }
    if (chunk < size)
        chunk = size;
    struct arena_chunk *c = malloc(sizeof *c + chunk);
    if (!c)
        return NULL;
    huge_pages_advise(c, sizeof *c + chunk);
    c->size = chunk;
    a->used_bytes += sizeof *c + chunk;
    if (large) { // insert it after the newest chunk, whose free space remains in use
        struct arena_chunk **at = a->chunks ? &a->chunks->next : &a->chunks;
        c->next = *at;
        *at = c;
        return c->data;
    }
    c->next = a->chunks;
    a->chunks = c;
    a->chunk_bytes = chunk;
    a->at = c->data + size;
    a->end = c->data + chunk;
    return c->data;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    if (a->at && size <= (size_t)(a->end - a->at)) {
        void *p = a->at;
        a->at += size;
        return p;
    }
    return grow(a, size);
}

void *arena_zalloc(struct arena *a, size_t size)
{
    void *p = arena_alloc(a, size);
    return p ? memset(p, 0, size) : NULL;
}

void *arena_array(struct arena *a, size_t count, size_t each)
{
    size_t size;
    return __builtin_mul_overflow(count, each, &size) ? NULL : arena_alloc(a, size);
}

bool arena_grow(struct arena *a, void *array, size_t *capacity, size_t count, size_t needed,
                size_t each)
{
    assert(count <= *capacity);
    size_t room = *capacity > SIZE_MAX / 2 ? needed : 2 * *capacity;
    if (room < ALIGN / each) // a smaller first array would take as much memory
        room = ALIGN / each;
    if (room < needed)
        room = needed;
    void *more = arena_array(a, room, each), *old;
    if (!more)
        return false;
    memcpy(&old, array, sizeof old); // copies the bytes of a pointer of any type
    if (count)
        memcpy(more, old, count * each);
    memcpy(array, &more, sizeof more);
    *capacity = room;
    return true;
}

char *arena_strdup(struct arena *a, struct str s)
{
    char *p = arena_alloc(a, s.size + 1);
    if (!p)
        return NULL;
    if (s.size)
        memcpy(p, s.data, s.size);
    p[s.size] = 0;
    return p;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *p = arena_strdup(a, s);
    return (struct str){p, p ? s.size : 0};
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return p;
}
