#include "base/huge_heap.h"

#include "base/huge_pages.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { ALIGNMENT = 16 };

// The head of a block. `size` includes the head.
struct head {
    uint32_t size, before; // before: size of the block before, 0 for the first block of the chunk
    uint32_t used;
    uint32_t zero;
};
_Static_assert(sizeof(struct head) == ALIGNMENT, "blocks are aligned");

// A free block.
struct room {
    struct head head;
    struct room *next, *previous; // the chunk's free blocks
};

struct chunk {
    struct room *free;
    // no free block is larger; becomes exact whenever the chunk has no room
    uint32_t largest;
    uint32_t blocks; // number of used blocks
    size_t index;    // its place in the heap's list
};

enum {
    FIRST_AT = (sizeof(struct chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT,
    // the end mark is a head without a block
    ROOM_BYTES = HUGE_PAGE_BYTES - FIRST_AT - (int)sizeof(struct head),
};
_Static_assert(HUGE_HEAP_BLOCK_MAX + (int)sizeof(struct head) <= ROOM_BYTES,
               "the largest block fits into a chunk");

struct huge_heap {
    size_t chunks_max, count, empty; // empty: number of chunks without used blocks
    struct chunk *chunks[];
};

struct huge_heap *huge_heap_create(size_t chunks_max)
{
    struct huge_heap *h = calloc(1, sizeof *h + chunks_max * sizeof(struct chunk *));
    if (h)
        h->chunks_max = chunks_max;
    return h;
}

// ---- Chunks ----

static struct head *head_at(const void *base, size_t at)
{
    return (struct head *)(void *)((char *)(uintptr_t)base + at);
}

static struct chunk *chunk_of(const void *block)
{
    return (struct chunk *)(void *)((uintptr_t)block & ~(uintptr_t)(HUGE_PAGE_BYTES - 1));
}

static void link_room(struct chunk *c, struct head *head)
{
    struct room *room = (struct room *)(void *)head;
    room->head.used = 0;
    room->previous = NULL;
    room->next = c->free;
    if (c->free)
        c->free->previous = room;
    c->free = room;
    if (head->size > c->largest)
        c->largest = head->size;
}

static void unlink_room(struct chunk *c, struct head *head)
{
    struct room *room = (struct room *)(void *)head;
    if (room->next)
        room->next->previous = room->previous;
    *(room->previous ? &room->previous->next : &c->free) = room->next;
}

// Maps twice the size and unmaps the parts before and after the aligned chunk.
static struct chunk *map_chunk(void)
{
    char *at = mmap(NULL, 2 * (size_t)HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    size_t early = -(uintptr_t)at & (HUGE_PAGE_BYTES - 1), late = HUGE_PAGE_BYTES - early;
    if (early)
        munmap(at, early);
    munmap(at + early + HUGE_PAGE_BYTES, late);
    madvise(at + early, HUGE_PAGE_BYTES, MADV_HUGEPAGE);
    return (struct chunk *)(void *)(at + early);
}

static struct chunk *add_chunk(struct huge_heap *h)
{
    struct chunk *c = h->count < h->chunks_max ? map_chunk() : NULL;
    if (!c)
        return NULL;
    struct head *first = head_at(c, FIRST_AT), *end = head_at(c, FIRST_AT + ROOM_BYTES);
    *c = (struct chunk){.index = h->count};
    *first = (struct head){.size = ROOM_BYTES};
    *end = (struct head){.before = ROOM_BYTES, .used = 1};
    link_room(c, first);
    h->chunks[h->count++] = c;
    h->empty++;
    return c;
}

static void remove_chunk(struct huge_heap *h, struct chunk *c)
{
    struct chunk *last = h->chunks[--h->count];
    h->chunks[c->index] = last;
    last->index = c->index;
    h->empty--;
    munmap(c, HUGE_PAGE_BYTES);
}

void huge_heap_destroy(struct huge_heap *h)
{
    for (size_t i = 0; h && i < h->count; i++)
        munmap(h->chunks[i], HUGE_PAGE_BYTES);
    free(h);
}

void huge_heap_trim(struct huge_heap *h)
{
    for (size_t i = h->count; h->empty && i-- > 0;)
        if (!h->chunks[i]->blocks)
            remove_chunk(h, h->chunks[i]);
}

size_t huge_heap_chunks(const struct huge_heap *h)
{
    return h->count;
}

// ---- Blocks ----

// Cuts `size` bytes off a free block. Returns the block.
static void *cut(struct huge_heap *h, struct chunk *c, struct head *head, uint32_t size)
{
    unlink_room(c, head);
    uint32_t left = head->size - size;
    if (left >= sizeof(struct room)) {
        struct head *rest = head_at(head, size);
        *rest = (struct head){.size = left, .before = size};
        head_at(rest, left)->before = left;
        head->size = size;
        link_room(c, rest);
    }
    head->used = 1;
    h->empty -= !c->blocks++;
    return head + 1;
}

static void *take_from(struct huge_heap *h, struct chunk *c, uint32_t size)
{
    uint32_t largest = 0;
    for (struct room *room = c->free; room; room = room->next) {
        if (room->head.size >= size)
            return cut(h, c, &room->head, size);
        largest = room->head.size > largest ? room->head.size : largest;
    }
    c->largest = largest;
    return NULL;
}

void *huge_heap_take(struct huge_heap *h, size_t bytes)
{
    if (bytes > HUGE_HEAP_BLOCK_MAX)
        return NULL;
    uint32_t size =
        (uint32_t)((bytes + sizeof(struct head) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (size < sizeof(struct room))
        size = sizeof(struct room);
    for (size_t i = 0; i < h->count; i++) {
        void *block = h->chunks[i]->largest >= size ? take_from(h, h->chunks[i], size) : NULL;
        if (block)
            return block;
    }
    struct chunk *c = add_chunk(h);
    return c ? take_from(h, c, size) : NULL;
}

void huge_heap_give(struct huge_heap *h, void *block)
{
    if (!block)
        return;
    struct head *head = (struct head *)block - 1, *after = head_at(head, head->size);
    struct chunk *c = chunk_of(head);
    assert(head->used && c->blocks);
    if (!after->used) {
        unlink_room(c, after);
        head->size += after->size;
    }
    if (head->before) {
        struct head *before = (struct head *)(void *)((char *)head - head->before);
        if (!before->used) {
            unlink_room(c, before);
            before->size += head->size;
            head = before;
        }
    }
    head_at(head, head->size)->before = head->size;
    link_room(c, head);
    if (--c->blocks)
        return;
    if (h->empty++)
        remove_chunk(h, c);
}
