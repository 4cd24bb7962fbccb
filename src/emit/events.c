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
    TEXT_BYTES_MAX = 4 + SEGMENT_TEXT_MAX +
                     SEGMENT_TAGS_MAX * (4 + SEGMENT_KEY_MAX + SEGMENT_VALUE_MAX) + EMIT_STR_SLACK,
    TEXT_ROOM = (TEXT_BYTES_MAX + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE,
};

struct frame {
    uint64_t start, id;
    uint64_t text_end; // where its text ends in `texts`
};

struct span_stack {
    uint64_t depth;
    // The first frame has no span. It is the parent of the outermost span, with the id 0.
    struct frame frames[1 + DEPTH_MAX];
    char texts[STACK_BYTES - 8 - (1 + DEPTH_MAX) * sizeof(struct frame)];
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

__attribute__((noinline, cold)) static struct span_stack *new_stack(const struct ring *r)
{
    struct span_stack *fresh =
        mmap(NULL, sizeof *fresh, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return NULL;
    open_spans[r->index].stack = fresh;
    return fresh;
}

// Returns NULL without memory.
static inline struct span_stack *stack_of(const struct ring *r)
{
    struct span_stack *s = open_spans[r->index].stack;
    return __builtin_expect(s != NULL, 1) ? s : new_stack(r);
}

static void refuse(void)
{
    atomic_fetch_add_explicit(&emit_process.header->refused, 1, memory_order_relaxed);
}

// The text of a record that is being encoded: a name, then tags.
struct text {
    char *start, *at;
    uint32_t tags_at; // where the number of tags is
    uint32_t tags;
};

// Encodes the name, cut at the limit.
static inline struct text text_begin(char *out, const char *name, size_t name_max)
{
    struct str kept = str_of(name ? name : "");
    if (__builtin_expect(kept.size > name_max, 0)) {
        kept = emit_cut(kept, name_max);
        refuse();
    }
    char *at = emit_put_str(out, kept);
    return (struct text){out, at + sizeof(uint16_t), (uint32_t)(at - out), 0};
}

// Leaves out a tag over a limit, and counts it.
static inline void text_tag(struct text *t, const char *key, const char *value)
{
    struct str k, v;
    if (__builtin_expect(t->tags == SEGMENT_TAGS_MAX ||
                             !emit_tag_texts(&(struct sonde_tag){key, value}, &k, &v),
                         0)) {
        refuse();
        return;
    }
    t->at = emit_put_str(emit_put_str(t->at, k), v);
    t->tags++;
}

// Returns the size of the text with its padding.
static inline size_t text_end(struct text *t)
{
    uint16_t tags = (uint16_t)t->tags;
    memcpy(t->start + t->tags_at, &tags, sizeof tags);
    const uint64_t zeros = 0;
    memcpy(t->at, &zeros, sizeof zeros); // in the slack
    return ((size_t)(t->at - t->start) + 7) / 8 * 8;
}

static size_t encode_text(char *out, const char *name, size_t name_max,
                          const struct sonde_tag *tags, size_t count)
{
    struct text t = text_begin(out, name, name_max);
    for (size_t i = 0; i < count; i++)
        text_tag(&t, tags[i].key, tags[i].value);
    return text_end(&t);
}

// Returns an id that is unique among all threads of this process.
static uint64_t next_id(struct ring *r)
{
    return ((uint64_t)r->index << 40) + ++r->spans;
}

static inline __attribute__((always_inline)) void put_event(struct ring *r, enum segment_type type,
                                                            unsigned flags, uint64_t start,
                                                            uint64_t end, uint64_t id,
                                                            uint64_t parent, const char *text,
                                                            size_t text_bytes)
{
    size_t bytes = SEGMENT_EVENT_WORDS * 8 + text_bytes;
    if (__builtin_expect(!emit_has_room(r, bytes), 0) && !(r = emit_room(bytes, 1)))
        return;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t *word = emit_data(r, head);
    word[0] = segment_word(type, flags, bytes / 8, 0);
    word[1] = start;
    word[2] = end;
    word[3] = id;
    word[4] = parent;
    word += SEGMENT_EVENT_WORDS;
    const char *after = text + text_bytes;
    do { // most texts are too short for a call of memcpy()
        memcpy(word++, text, sizeof *word);
        text += sizeof *word;
    } while (text < after);
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

__attribute__((noinline, cold)) static void refuse_span(const struct ring *r)
{
    open_spans[r->index].unrecorded++;
    refuse();
}

// Returns this thread's stack with room for one more frame. NULL: it has none, and the span is
// counted as not recorded.
static inline struct span_stack *stack_with_room(const struct ring *r)
{
    struct span_stack *s = stack_of(r);
    if (__builtin_expect(s && !open_spans[r->index].unrecorded && s->depth < DEPTH_MAX &&
                             s->frames[s->depth].text_end <= sizeof s->texts - TEXT_BYTES_MAX,
                         1))
        return s;
    refuse_span(r);
    return NULL;
}

// Returns where the text of the next span is encoded.
static inline char *next_text(struct span_stack *s)
{
    return s->texts + s->frames[s->depth].text_end;
}

static inline void span_begin(struct ring *r, struct span_stack *s, uint64_t start,
                              size_t text_bytes)
{
    const char *text = next_text(s);
    const struct frame *parent = &s->frames[s->depth];
    struct frame *own = &s->frames[s->depth + 1];
    *own = (struct frame){start, next_id(r), parent->text_end + text_bytes};
    s->depth++;
    put_event(r, SEGMENT_SPAN_BEGIN, 0, start, 0, own->id, parent->id, text, text_bytes);
}

void sonde_span_begin_tags(const char *name, const struct sonde_tag *tags, size_t count)
{
    struct ring *r = emit_ring_if_needed(1);
    if (!r)
        return;
    uint64_t start = emit_time(r);
    struct span_stack *s = stack_with_room(r);
    if (s)
        span_begin(r, s, start, encode_text(next_text(s), name, SEGMENT_NAME_MAX, tags, count));
}

void sonde_span_end(void)
{
    struct ring *r = emit_ring_if_needed(0);
    if (!r)
        return;
    struct span_stack *s = open_spans[r->index].stack;
    if (__builtin_expect(open_spans[r->index].unrecorded, 0)) {
        open_spans[r->index].unrecorded--;
        return;
    }
    if (__builtin_expect(!s || !s->depth, 0))
        return; // the span was not begun, or was begun before a fork
    const struct frame *own = &s->frames[s->depth--], *parent = &s->frames[s->depth];
    put_event(r, SEGMENT_SPAN_END, 0, own->start, emit_time(r), own->id, parent->id, next_text(s),
              own->text_end - parent->text_end);
}

void sonde_span_at(const char *name, int64_t start_ns, int64_t end_ns, const struct sonde_tag *tags,
                   size_t count)
{
    struct ring *r = emit_ring_if_needed(1);
    char *text = r ? text_of(r) : NULL;
    if (!text)
        return;
    size_t bytes = encode_text(text, name, SEGMENT_NAME_MAX, tags, count);
    put_event(r, SEGMENT_SPAN_END, SEGMENT_TIME_NS, (uint64_t)start_ns, (uint64_t)end_ns,
              next_id(r), 0, text, bytes);
}

// In sonde_span.process, beside the pid: the start is a time of the ring's clock. If it is missing,
// the caller gave the start, in ns since the epoch.
#define OWN_CLOCK (UINT32_C(1) << 31)

static inline struct sonde_span span_open(struct ring *r, const char *name, int64_t start,
                                          uint32_t own_clock, const struct sonde_tag *tags,
                                          size_t count, const struct sonde_span *parent)
{
    char *text = text_of(r);
    if (!text)
        return (struct sonde_span){0};
    size_t bytes = encode_text(text, name, SEGMENT_NAME_MAX, tags, count);
    uint32_t pid = emit_process.header->pid;
    struct sonde_span span = {next_id(r), 0, start, pid | own_clock};
    if (parent && (parent->process & ~OWN_CLOCK) == pid)
        span.parent = parent->id;
    put_event(r, SEGMENT_SPAN_BEGIN, own_clock ? 0 : SEGMENT_TIME_NS, (uint64_t)start, 0, span.id,
              span.parent, text, bytes);
    return span;
}

struct sonde_span sonde_span_open(const char *name, const struct sonde_tag *tags, size_t count,
                                  const struct sonde_span *parent)
{
    struct ring *r = emit_ring_if_needed(1);
    return r ? span_open(r, name, (int64_t)emit_time(r), OWN_CLOCK, tags, count, parent)
             : (struct sonde_span){0};
}

struct sonde_span sonde_span_open_at(const char *name, int64_t start_ns,
                                     const struct sonde_tag *tags, size_t count,
                                     const struct sonde_span *parent)
{
    struct ring *r = emit_ring_if_needed(1);
    return r ? span_open(r, name, start_ns, 0, tags, count, parent) : (struct sonde_span){0};
}

// Returns the ring for the end of the span. NULL: the span cannot be closed here.
static inline struct ring *ring_to_close(const struct sonde_span *span)
{
    struct ring *r = span->id ? emit_ring_if_needed(1) : NULL;
    // after a fork, the parent must close the spans that it opened
    return r && (span->process & ~OWN_CLOCK) == emit_process.header->pid ? r : NULL;
}

static inline void span_close(struct ring *r, const struct sonde_span *span, const char *name,
                              uint64_t end, unsigned flags, const struct sonde_tag *tags,
                              size_t count)
{
    char *text = text_of(r);
    if (!text)
        return;
    size_t bytes = encode_text(text, name, SEGMENT_NAME_MAX, tags, count);
    put_event(r, SEGMENT_SPAN_END, flags, (uint64_t)span->start, end, span->id, span->parent, text,
              bytes);
}

void sonde_span_close(const struct sonde_span *span, const char *name, const struct sonde_tag *tags,
                      size_t count)
{
    struct ring *r = ring_to_close(span);
    if (!r)
        return;
    if (span->process & OWN_CLOCK)
        span_close(r, span, name, emit_time(r), 0, tags, count);
    else
        span_close(r, span, name, (uint64_t)clock_realtime_ns(), SEGMENT_TIME_NS, tags, count);
}

void sonde_span_close_at(const struct sonde_span *span, const char *name, int64_t end_ns,
                         const struct sonde_tag *tags, size_t count)
{
    struct ring *r = ring_to_close(span);
    if (r)
        span_close(r, span, name, (uint64_t)end_ns,
                   span->process & OWN_CLOCK ? SEGMENT_END_NS : SEGMENT_TIME_NS, tags, count);
}

static void put_note(struct ring *r, const char *text, size_t text_bytes)
{
    uint64_t now = emit_time(r);
    put_event(r, SEGMENT_NOTE, 0, now, now, 0, 0, text, text_bytes);
}

void sonde_annotate_tags(const char *text, const struct sonde_tag *tags, size_t count)
{
    struct ring *r = emit_ring_if_needed(1);
    char *encoded = r ? text_of(r) : NULL;
    if (encoded)
        put_note(r, encoded, encode_text(encoded, text, SEGMENT_TEXT_MAX, tags, count));
}

// Encodes the tags of the arguments: key, value, … up to NULL. Leaves out a key without a value.
static inline void text_tags(struct text *t, va_list args)
{
    for (const char *key, *value;
         (key = va_arg(args, const char *)) && (value = va_arg(args, const char *));)
        text_tag(t, key, value);
}

void sonde_span_begin_strings(const char *name, ...)
{
    struct ring *r = emit_ring_if_needed(1);
    if (!r)
        return;
    uint64_t start = emit_time(r);
    struct span_stack *s = stack_with_room(r);
    if (!s)
        return;
    struct text t = text_begin(next_text(s), name, SEGMENT_NAME_MAX);
    va_list args;
    va_start(args, name);
    text_tags(&t, args);
    va_end(args);
    span_begin(r, s, start, text_end(&t));
}

void sonde_annotate_strings(const char *text, ...)
{
    struct ring *r = emit_ring_if_needed(1);
    char *encoded = r ? text_of(r) : NULL;
    if (!encoded)
        return;
    struct text t = text_begin(encoded, text, SEGMENT_TEXT_MAX);
    va_list args;
    va_start(args, text);
    text_tags(&t, args);
    va_end(args);
    put_note(r, encoded, text_end(&t));
}
