// buffers.c - memory for decoded columns, reused while a snapshot is open.
//
// A reader decodes a column, reads it, and returns the buffer. The buffer that was returned last is
// reused first, so the next column is decoded into memory that is still in the nearest cache. Sizes
// are powers of two, so any buffer of a level fits.
#include "store/reader.h"

#include <assert.h>
#include <stdlib.h>

enum {
    FIRST_LEVEL_WORDS = 1024, // the length of a hot column
    ALIGNMENT = 64,
    IDLE_BYTES_MAX = 8 << 20, // limit of the buffers that are kept for reuse
};

struct buffer {
    struct buffer *next;
    unsigned level;
};

static struct buffer *head_of(void *words)
{
    return (struct buffer *)(void *)((char *)words - ALIGNMENT);
}

static size_t bytes_of_level(unsigned level)
{
    return ALIGNMENT + (FIRST_LEVEL_WORDS * sizeof(uint64_t) << level);
}

void *buffer_take(struct buffers *all, size_t words)
{
    unsigned level = 0;
    while (level < BUFFER_LEVELS && words > (size_t)FIRST_LEVEL_WORDS << level)
        level++;
    if (level == BUFFER_LEVELS)
        return NULL;
    struct buffer *b = all->idle[level];
    if (b) {
        all->idle[level] = b->next;
        all->idle_bytes -= bytes_of_level(level);
    } else {
        b = aligned_alloc(ALIGNMENT, bytes_of_level(level));
        if (!b)
            return NULL;
        b->level = level;
    }
    return (char *)b + ALIGNMENT;
}

void buffer_give(struct buffers *all, void *words)
{
    if (!words)
        return;
    struct buffer *b = head_of(words);
    assert(b->level < BUFFER_LEVELS);
    size_t bytes = bytes_of_level(b->level);
    if (all->idle_bytes + bytes > IDLE_BYTES_MAX) {
        free(b);
        return;
    }
    b->next = all->idle[b->level];
    all->idle[b->level] = b;
    all->idle_bytes += bytes;
}

size_t buffer_words(void *words)
{
    return words ? (size_t)FIRST_LEVEL_WORDS << head_of(words)->level : 0;
}

void buffers_free(struct buffers *all)
{
    for (unsigned level = 0; level < BUFFER_LEVELS; level++)
        while (all->idle[level]) {
            struct buffer *b = all->idle[level];
            all->idle[level] = b->next;
            free(b);
        }
    all->idle_bytes = 0;
}
