// events.c - spans and annotations.
//
// Each slot has a stack with the open spans of its thread. It is in the program's own memory, and
// is allocated at the first span or annotation. From it, the end of a span can write a complete
// record. If it has no room (64 spans deep, or 64 KiB of tags), a span is not recorded. It is
// counted, so that its end does not end another span. The texts of other records are encoded beside
// it, because a thread's own stack may have only 16 KiB.
#include "base/clock.h"
#include "emit/ring.h"
#include "emit/tags.h"

#include "sonde.h"

#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

enum {
    STACK_BYTES = 64 << 10,
    DEPTH_MAX = 64,
    FRAME_FIXED = 24,
    TEXT_BYTES_MAX =
        4 + SEGMENT_TEXT_MAX + SEGMENT_TAGS_MAX * (4 + SEGMENT_KEY_MAX + SEGMENT_VALUE_MAX) + 8,
    TEXT_ROOM = (TEXT_BYTES_MAX + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE,
};

// A frame of the stack: start, id, parent, text as in the record.
struct span_stack {
    uint32_t depth;
    uint32_t ends[DEPTH_MAX];
    char frames[STACK_BYTES - 4 - 4 * DEPTH_MAX];
    char text[TEXT_ROOM]; // of a record that has no frame
};

_Static_assert(sizeof(struct span_stack) == STACK_BYTES + TEXT_ROOM, "whole pages");

// One for each slot. Only the thread that has the slot uses it.
static struct {
    struct span_stack *stack; // NULL: this slot has had no span or annotation
    // number of spans begun while the stack was full or could not be allocated
    uint32_t unrecorded;
} open_spans[SEGMENT_SLOTS_MAX];

void emit_spans_forget(uint32_t slot)
{
    open_spans[slot].unrecorded = 0;
    if (open_spans[slot].stack)
        open_spans[slot].stack->depth = 0;
}

// Returns NULL without memory.
static struct span_stack *stack_of(const struct ring *r)
{
    struct span_stack **stack = &open_spans[r->index].stack;
    if (!*stack) {
        void *fresh =
            mmap(NULL, sizeof **stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *stack = fresh == MAP_FAILED ? NULL : fresh;
    }
    return *stack;
}

static void refuse(void)
{
    atomic_fetch_add_explicit(&emit_process.header->refused, 1, memory_order_relaxed);
}

// Encodes the text of a record, padded, and returns its size. Cuts a name over the limit, and
// leaves out a tag over a limit; both are counted.
static size_t encode_text(char *out, const char *name, size_t name_max,
                          const struct sonde_tag *tags, size_t count)
{
    struct str kept = str_of(name ? name : ""), key, value;
    if (__builtin_expect(kept.size > name_max, 0)) {
        kept = emit_cut(kept, name_max);
        refuse();
    }
    char *at = emit_put_str(out, kept), *tags_at = at;
    uint16_t taken = 0;
    at += sizeof taken;
    for (size_t i = 0; i < count; i++) {
        if (taken == SEGMENT_TAGS_MAX || !emit_tag_texts(&tags[i], &key, &value)) {
            refuse();
            continue;
        }
        at = emit_put_str(at, key);
        at = emit_put_str(at, value);
        taken++;
    }
    memcpy(tags_at, &taken, sizeof taken);
    const uint64_t zeros = 0;
    memcpy(at, &zeros, sizeof zeros); // TEXT_BYTES_MAX has room for it
    return ((size_t)(at - out) + 7) / 8 * 8;
}

// Returns an id that is unique among all threads of this process.
static uint64_t next_id(struct ring *r)
{
    return ((uint64_t)r->index << 40) + ++r->spans;
}

static void put_event(enum segment_type type, unsigned flags, uint64_t start, uint64_t end,
                      uint64_t id, uint64_t parent, const char *text, size_t text_bytes)
{
    size_t bytes = SEGMENT_EVENT_WORDS * 8 + text_bytes;
    struct ring *r = emit_room_if_needed(bytes, 1);
    if (!r)
        return;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t *word = emit_data(r, head);
    word[0] = segment_word(type, flags, bytes / 8, 0);
    word[1] = start;
    word[2] = end;
    word[3] = id;
    word[4] = parent;
    for (size_t i = 0; i < text_bytes; i += 8) // most texts are too short for a call of memcpy()
        memcpy(&word[5 + i / 8], text + i, 8);
    emit_publish(r, head + bytes);
}

// Returns the place where the text of a record is encoded. NULL: there is no memory, and the record
// is refused.
static char *text_of(const struct ring *r)
{
    struct span_stack *s = stack_of(r);
    if (!s)
        refuse();
    return s ? s->text : NULL;
}

static void span_begin(struct ring *r, const char *name, const struct sonde_tag *tags, size_t count)
{
    uint64_t start = emit_time(r);
    struct span_stack *s = stack_of(r);
    uint32_t used = s && s->depth ? s->ends[s->depth - 1] : 0;
    if (!s || open_spans[r->index].unrecorded || s->depth == DEPTH_MAX ||
        sizeof s->frames - used < FRAME_FIXED + TEXT_BYTES_MAX) {
        open_spans[r->index].unrecorded++;
        refuse();
        return;
    }
    uint64_t parent = 0, id = next_id(r);
    if (s->depth) // the frame of the parent: start, id, parent …
        memcpy(&parent, s->frames + (s->depth > 1 ? s->ends[s->depth - 2] : 0) + 8, sizeof parent);
    char *frame = s->frames + used;
    memcpy(frame, &start, 8);
    memcpy(frame + 8, &id, 8);
    memcpy(frame + 16, &parent, 8);
    size_t text_bytes = encode_text(frame + FRAME_FIXED, name, SEGMENT_NAME_MAX, tags, count);
    s->ends[s->depth++] = used + FRAME_FIXED + (uint32_t)text_bytes;
    put_event(SEGMENT_SPAN_BEGIN, 0, start, 0, id, parent, frame + FRAME_FIXED, text_bytes);
}

void sonde_span_begin_tags(const char *name, const struct sonde_tag *tags, size_t count)
{
    struct ring *r = emit_ring_if_needed(1);
    if (r)
        span_begin(r, name, tags, count);
}

void sonde_span_end(void)
{
    struct ring *r = emit_ring_if_needed(0);
    if (!r)
        return;
    struct span_stack *s = open_spans[r->index].stack;
    if (open_spans[r->index].unrecorded) {
        open_spans[r->index].unrecorded--;
        return;
    }
    if (!s || !s->depth)
        return; // the span was not begun, or was begun before a fork
    uint32_t end_of_frame = s->ends[--s->depth], at = s->depth ? s->ends[s->depth - 1] : 0;
    uint64_t start, id, parent;
    memcpy(&start, s->frames + at, 8);
    memcpy(&id, s->frames + at + 8, 8);
    memcpy(&parent, s->frames + at + 16, 8);
    put_event(SEGMENT_SPAN_END, 0, start, emit_time(r), id, parent, s->frames + at + FRAME_FIXED,
              end_of_frame - at - FRAME_FIXED);
}

void sonde_span_at(const char *name, int64_t start_ns, int64_t end_ns, const struct sonde_tag *tags,
                   size_t count)
{
    struct ring *r = emit_ring_if_needed(1);
    char *text = r ? text_of(r) : NULL;
    if (!text)
        return;
    size_t bytes = encode_text(text, name, SEGMENT_NAME_MAX, tags, count);
    put_event(SEGMENT_SPAN_END, SEGMENT_TIME_NS, (uint64_t)start_ns, (uint64_t)end_ns, next_id(r),
              0, text, bytes);
}

static struct sonde_span span_open(struct ring *r, const char *name, int64_t start_ns,
                                   const struct sonde_tag *tags, size_t count,
                                   const struct sonde_span *parent)
{
    char *text = text_of(r);
    if (!text)
        return (struct sonde_span){0};
    size_t bytes = encode_text(text, name, SEGMENT_NAME_MAX, tags, count);
    struct sonde_span span = {next_id(r), 0, start_ns, emit_process.header->pid};
    if (parent && parent->process == span.process)
        span.parent = parent->id;
    put_event(SEGMENT_SPAN_BEGIN, SEGMENT_TIME_NS, (uint64_t)span.start_ns, 0, span.id, span.parent,
              text, bytes);
    return span;
}

struct sonde_span sonde_span_open(const char *name, const struct sonde_tag *tags, size_t count,
                                  const struct sonde_span *parent)
{
    struct ring *r = emit_ring_if_needed(1);
    return r ? span_open(r, name, clock_realtime_ns(), tags, count, parent)
             : (struct sonde_span){0};
}

struct sonde_span sonde_span_open_at(const char *name, int64_t start_ns,
                                     const struct sonde_tag *tags, size_t count,
                                     const struct sonde_span *parent)
{
    struct ring *r = emit_ring_if_needed(1);
    return r ? span_open(r, name, start_ns, tags, count, parent) : (struct sonde_span){0};
}

void sonde_span_close(const struct sonde_span *span, const char *name, const struct sonde_tag *tags,
                      size_t count)
{
    if (span->id)
        sonde_span_close_at(span, name, clock_realtime_ns(), tags, count);
}

void sonde_span_close_at(const struct sonde_span *span, const char *name, int64_t end_ns,
                         const struct sonde_tag *tags, size_t count)
{
    struct ring *r = span->id ? emit_ring_if_needed(1) : NULL;
    if (!r ||
        // it was opened before a fork, so the parent must close it
        span->process != emit_process.header->pid)
        return;
    char *text = text_of(r);
    if (!text)
        return;
    size_t bytes = encode_text(text, name, SEGMENT_NAME_MAX, tags, count);
    put_event(SEGMENT_SPAN_END, SEGMENT_TIME_NS, (uint64_t)span->start_ns, (uint64_t)end_ns,
              span->id, span->parent, text, bytes);
}

void sonde_annotate_tags(const char *text, const struct sonde_tag *tags, size_t count)
{
    struct ring *r = emit_ring_if_needed(1);
    char *encoded = r ? text_of(r) : NULL;
    if (!encoded)
        return;
    size_t bytes = encode_text(encoded, text, SEGMENT_TEXT_MAX, tags, count);
    uint64_t now = emit_time(r);
    put_event(SEGMENT_NOTE, 0, now, now, 0, 0, encoded, bytes);
}

// Collects tags from the arguments: key, value, … up to NULL. Leaves out a key without a value.
static size_t gather(struct sonde_tag tags[SEGMENT_TAGS_MAX], va_list args)
{
    size_t count = 0;
    for (;;) {
        const char *key = va_arg(args, const char *);
        const char *value = key ? va_arg(args, const char *) : NULL;
        if (!value)
            return count;
        if (count < SEGMENT_TAGS_MAX)
            tags[count++] = (struct sonde_tag){key, value};
        else
            refuse();
    }
}

void sonde_span_begin_strings(const char *name, ...)
{
    struct ring *r = emit_ring_if_needed(1);
    if (!r)
        return;
    struct sonde_tag tags[SEGMENT_TAGS_MAX];
    va_list args;
    va_start(args, name);
    size_t count = gather(tags, args);
    va_end(args);
    span_begin(r, name, tags, count);
}

void sonde_annotate_strings(const char *text, ...)
{
    if (!emit_on())
        return;
    struct sonde_tag tags[SEGMENT_TAGS_MAX];
    va_list args;
    va_start(args, text);
    size_t count = gather(tags, args);
    va_end(args);
    sonde_annotate_tags(text, tags, count);
}
