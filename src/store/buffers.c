// buffers.c - memory for decoded columns, reused while a snapshot is open.
//
// A reader decodes a column, reads it, and returns the buffer. The buffer that was returned last is
// reused first, so the next column is decoded into memory that is still in the nearest cache. Any
// buffer of a level fits. The first level is for the short columns of a live recording, the second
// for those of a sealed block, and each further level is twice as large as the one before.
#include "store/reader.h"

#include <assert.h>
#include <stdlib.h>

enum {
    // malloc keeps freed buffers of the first level for the thread: with their head they have less
    // than 1,032 bytes
    SHORT_WORDS = 112,
    LEVEL_WORDS = 1024, // of the second level
    ALIGNMENT = 64,
    IDLE_BYTES_MAX = 8 << 20, // limit of the buffers that are kept for reuse
};

// Lies directly before the words.
struct buffer {
    struct buffer *next;
    void *allocated;
    unsigned level;
};

static struct buffer *head_of(void *words)
{
    return (struct buffer *)words - 1;
}

static size_t words_of_level(unsigned level)
{
    return level ? (size_t)LEVEL_WORDS << (level - 1) : SHORT_WORDS;
}

static size_t bytes_of_level(unsigned level)
{
    return sizeof(struct buffer) + ALIGNMENT - 1 + words_of_level(level) * sizeof(uint64_t);
}

// Not aligned_alloc: it keeps no freed buffers for the thread.
static struct buffer *new_buffer(unsigned level)
{
    char *allocated = malloc(bytes_of_level(level));
    if (!allocated)
        return NULL;
    uintptr_t end = (uintptr_t)allocated + sizeof(struct buffer);
    struct buffer *b = head_of(allocated + sizeof(struct buffer) + -end % ALIGNMENT);
    b->allocated = allocated;
    b->level = level;
    return b;
}

void *buffer_take(struct buffers *all, size_t words)
{
    unsigned level = 0;
    while (level < BUFFER_LEVELS && words > words_of_level(level))
        level++;
    if (level == BUFFER_LEVELS)
        return NULL;
    struct buffer *b = all->idle[level];
    if (b) {
        all->idle[level] = b->next;
        all->idle_bytes -= bytes_of_level(level);
    } else {
        b = new_buffer(level);
    }
    return b ? b + 1 : NULL;
}

void buffer_give(struct buffers *all, void *words)
{
    if (!words)
        return;
    struct buffer *b = head_of(words);
    assert(b->level < BUFFER_LEVELS);
    size_t bytes = bytes_of_level(b->level);
    if (all->idle_bytes + bytes > IDLE_BYTES_MAX) {
        free(b->allocated);
        return;
    }
    b->next = all->idle[b->level];
    all->idle[b->level] = b;
    all->idle_bytes += bytes;
}

size_t buffer_words(void *words)
{
    return words ? words_of_level(head_of(words)->level) : 0;
}

void buffers_free(struct buffers *all)
{
    for (unsigned level = 0; level < BUFFER_LEVELS; level++)
        while (all->idle[level]) {
            struct buffer *b = all->idle[level];
            all->idle[level] = b->next;
            free(b->allocated);
        }
    all->idle_bytes = 0;
}
