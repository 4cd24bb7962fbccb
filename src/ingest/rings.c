// rings.c - moves the records of a program's rings into the store.
//
// The memory belongs to a program that may change it at any time. So the agent has its own copies
// of tails and sizes, reads every word once, copies data that it needs twice, and checks lengths
// against the available bytes. If the contents of a ring are invalid, the agent skips to its head
// and counts the skipped values.
//
// The fast path is a point: read the header word, time and value, look up the definition, and add a
// struct store_point to the batch.
#include "base/array.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"
#include "ingest/ingest_internal.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    PUBLISH_BYTES = 128 << 10, // a busy program gets new room after this many bytes
    // how many records after the begin of a span are searched for its end: enough for 16 threads
    // with a short span each
    ENDS_SOON = 32,
};

void ingest_flush_points(struct ingest *in)
{
    if (!in->point_count)
        return;
    size_t refused = 0;
    store_append_points(in->store, in->points, in->point_count, &refused);
    in->stats.points += in->point_count - refused;
    in->stats.dropped_store += refused;
    in->point_count = 0;
}

static uint64_t read_word(const uint64_t *at)
{
    return *(const volatile uint64_t *)at;
}

// The state for taking the records of one ring.
struct taking {
    struct ingest *in;
    struct program *p;
    struct conversion_source source;
    int64_t newest;    // newest time of the points so far, by the source's clock
    int64_t future_ns; // a given time after this one is replaced
    uint32_t slot;
};

__attribute__((always_inline)) static inline int64_t clock_of(struct taking *t, uint64_t word)
{
    bool clamped = false;
    int64_t ns = conversion_clock_ns(&t->p->conversion, &t->source, word, &clamped);
    if (__builtin_expect(clamped, 0))
        t->in->stats.clamped++;
    return ns;
}

// Returns a time of a span or an annotation; `given`: the caller gave it.
static int64_t moment_of(struct taking *t, uint64_t word, bool given)
{
    return given ? (int64_t)word
                 : conversion_real_ns(&t->p->conversion, &t->source, clock_of(t, word));
}

__attribute__((noinline, cold)) static int64_t too_far_ahead(struct taking *t)
{
    t->in->stats.clamped++;
    if (!t->p->warned_ahead)
        log_warning("process %d emits at times that are ahead of this node's clock by more than %d "
                    "s: they are put to now",
                    (int)t->p->pid, (int)(INGEST_FUTURE_MAX_NS / NS_PER_S));
    t->p->warned_ahead = true;
    return conversion_now_ns(&t->p->conversion, &t->source);
}

// Stores the time of a point. Returns false if no distinct time is left for it; the point is then
// lost.
__attribute__((always_inline)) static inline bool time_of(struct taking *t, uint64_t word,
                                                          unsigned flags, int64_t *out)
{
    const struct conversion *c = &t->p->conversion;
    int64_t ns;
    if (flags & SEGMENT_TIME_NS) {
        *out = (int64_t)word;
        if (*out <= t->future_ns)
            return true;
        ns = too_far_ahead(t);
    } else {
        ns = clock_of(t, word);
    }
    return conversion_distinct_ns(c, &t->source, ns, &t->newest, out);
}

static void take_row(struct taking *t, const uint64_t *data, unsigned flags, uint64_t words,
                     uint32_t handle)
{
    struct ingest *in = t->in;
    const struct program *p = t->p;
    int64_t when;
    double values[SEGMENT_GROUP_MAX], row[SEGMENT_GROUP_MAX];
    const struct definition *d = handle < p->definition_count ? &p->definitions[handle] : NULL;
    if (d && d->state == DEFINITION_OFF)
        return;
    if (!d || d->state != DEFINITION_GROUP || d->group->members != words - 2) {
        if (d && d->state == DEFINITION_LIMIT)
            in->stats.dropped_limit += words - 2;
        else
            in->stats.dropped_corrupt += words;
        return;
    }
    const struct group *g = d->group;
    memcpy(values, data + 2, g->members * sizeof *values);
    for (uint32_t i = 0; i < g->columns; i++)
        row[i] = values[g->from[i]];
    if (!time_of(t, read_word(data + 1), flags, &when))
        in->stats.dropped_limit += g->columns;
    else if (store_append_row(in->store, g->set, when, row) == 0)
        in->stats.points += g->columns;
    else
        in->stats.dropped_store += g->columns;
}

// Another thread than the one that opened a span may close it. The agent reads slots in their
// order, so it may read the end before the begin. Both are in the same drain, because the heads
// were read in this order, too.
static void note_early_end(struct program *p, uint32_t slot, uint64_t number)
{
    if (number >> OPEN_SPANS_SLOT_SHIFT > slot && p->ended_early_count < INGEST_ENDED_EARLY_MAX &&
        array_room(&p->ended_early, &p->ended_early_capacity, p->ended_early_count + 1,
                   sizeof *p->ended_early))
        p->ended_early[p->ended_early_count++] = number;
}

static bool has_ended_early(const struct program *p, uint64_t number)
{
    for (size_t i = 0; i < p->ended_early_count; i++)
        if (p->ended_early[i] == number)
            return true;
    return false;
}

static void take_event(struct taking *t, const uint64_t *data, unsigned type, unsigned flags,
                       uint64_t words)
{
    struct ingest *in = t->in;
    struct program *p = t->p;
    uint64_t copy[SEGMENT_RECORD_WORDS_MAX];
    memcpy(copy, data, words * 8);
    struct store_label own[SEGMENT_TAGS_MAX], all[STORE_LABELS_MAX];
    struct bytes b = bytes_of(copy + SEGMENT_EVENT_WORDS, (words - SEGMENT_EVENT_WORDS) * 8);
    struct str text = bytes_take(&b, bytes_u16(&b));
    unsigned tags = bytes_u16(&b);
    for (unsigned i = 0; i < tags && i < SEGMENT_TAGS_MAX; i++) {
        own[i].key = bytes_take(&b, bytes_u16(&b));
        own[i].value = bytes_take(&b, bytes_u16(&b));
    }
    if (b.failed || tags > SEGMENT_TAGS_MAX) {
        in->stats.dropped_corrupt += words;
        return;
    }
    struct store_event e = {
        .kind = type == SEGMENT_NOTE ? STORE_ANNOTATION : STORE_SPAN, .text = text, .labels = all};
    e.start_ns = moment_of(t, copy[1], flags & SEGMENT_TIME_NS);
    e.end_ns = type == SEGMENT_SPAN_BEGIN
                   ? INT64_MAX
                   : moment_of(t, copy[2], flags & (SEGMENT_TIME_NS | SEGMENT_END_NS));
    if (e.end_ns < e.start_ns)
        e.end_ns = e.start_ns;
    if (e.kind == STORE_SPAN) {
        e.id = hash_u64(copy[3] ^ p->salt);
        e.parent = copy[4] ? hash_u64(copy[4] ^ p->salt) : 0;
    }
    if (!ingest_labels(in, p, own, tags, all, &e.label_count)) {
        // The event is more important than its last tags, so it is stored without them.
        in->stats.dropped_limit++;
        e.label_count = STORE_LABELS_MAX;
    }
    if (type == SEGMENT_SPAN_BEGIN && has_ended_early(p, copy[3]))
        return;
    if (store_append_event(in->store, &e) != 0)
        in->stats.dropped_store++;
    if (type == SEGMENT_SPAN_BEGIN) {
        open_spans_add(in, &p->open_spans, &e);
    } else if (type == SEGMENT_SPAN_END) {
        open_spans_remove(in, &p->open_spans, e.id);
        note_early_end(p, t->slot, copy[3]);
    }
}

// True if the end of a span that begins at `begin` is among the next records. The end repeats all
// data of the begin, so a short span that has ended before the drain is stored only once.
static bool ends_soon(const struct program *p, const char *base, uint64_t begin,
                      uint64_t begin_words, uint64_t head)
{
    uint64_t mask = p->ring_bytes - 1, at = begin + begin_words * 8;
    if (begin_words <= SEGMENT_EVENT_WORDS)
        return false;
    uint64_t id = read_word((const uint64_t *)(const void *)(base + (begin & mask)) + 3);
    for (unsigned i = 0; i < ENDS_SOON && at != head; i++) {
        const uint64_t *data = (const uint64_t *)(const void *)(base + (at & mask));
        uint64_t word = read_word(data), words = word >> 16 & 0xffff;
        if (words == 0 || words * 8 > head - at || words * 8 > p->ring_bytes - (at & mask))
            return false;
        if ((word & 0xff) == SEGMENT_SPAN_END && words > SEGMENT_EVENT_WORDS &&
            read_word(data + 3) == id)
            return true;
        at += words * 8;
    }
    return false;
}

// Stores one record that is not a point. Returns false if it is invalid.
static bool take_record(struct taking *t, const uint64_t *data, uint64_t word, uint64_t words)
{
    unsigned type = word & 0xff, flags = word >> 8 & 0xff;
    switch (type) {
    case SEGMENT_PAD:
        return true;
    case SEGMENT_ROW:
        if (words < 3)
            return false;
        take_row(t, data, flags, words, (uint32_t)(word >> 32));
        return true;
    case SEGMENT_SPAN_BEGIN:
    case SEGMENT_SPAN_END:
    case SEGMENT_NOTE:
        if (words <= SEGMENT_EVENT_WORDS || words > SEGMENT_RECORD_WORDS_MAX)
            return false;
        take_event(t, data, type, flags, words);
        return true;
    default:
        return false;
    }
}

// Lets the program overwrite the records before `tail`, which are all in the store.
static void publish_tail(struct program *p, uint32_t slot, uint64_t tail, int64_t newest)
{
    unsigned commit = p->commits[slot] ^= 1;
    // An agent that is killed between any two of these stores leaves the old tail or the new one,
    // each with its own newest time. Release: an agent that reads these bytes as the tail also
    // reads their newest time.
    atomic_store_explicit(&p->agent->tails[slot].newest[commit].newest, (uint64_t)newest,
                          memory_order_relaxed);
    atomic_store_explicit(&p->agent->tails[slot].newest[commit].bytes, tail, memory_order_release);
    p->tails[slot] = tail;
    p->newest[slot] = newest;
    // Release: the program overwrites the bytes before the tail only after our reads of them.
    atomic_store_explicit(&p->agent->tails[slot].bytes, tail, memory_order_release);
}

// Writes the conversion of this drain for the next agent. No ring has claimed records at this time.
static void publish_conversion(struct program *p)
{
    uint64_t words[SEGMENT_CONVERSION_WORDS] = {0};
    _Static_assert(sizeof p->conversion <= sizeof words,
                   "the agent's area has room for a conversion");
    memcpy(words, &p->conversion, sizeof p->conversion);
    for (size_t i = 0; i < SEGMENT_CONVERSION_WORDS; i++)
        atomic_store_explicit(&p->agent->conversion[i], words[i], memory_order_relaxed);
}

bool program_resume(struct program *p)
{
    p->heads = calloc(p->slots, sizeof *p->heads);
    p->tails = calloc(p->slots, sizeof *p->tails);
    p->newest = calloc(p->slots, sizeof *p->newest);
    p->dropped = calloc(p->slots, sizeof *p->dropped);
    p->commits = calloc(p->slots, sizeof *p->commits);
    if (!p->heads || !p->tails || !p->newest || !p->dropped || !p->commits)
        return false;
    p->lost = atomic_load_explicit(&p->agent->dropped, memory_order_relaxed);
    p->refused = atomic_load_explicit(&p->agent->refused, memory_order_relaxed);
    for (uint32_t i = 0; i < p->slots; i++) {
        uint64_t bytes = atomic_load_explicit(&p->agent->tails[i].bytes, memory_order_relaxed);
        uint64_t claimed = atomic_load_explicit(&p->agent->tails[i].claimed, memory_order_relaxed);
        p->tails[i] = bytes & ~UINT64_C(7);
        p->dropped[i] = atomic_load_explicit(&p->agent->tails[i].dropped, memory_order_relaxed);
        p->interrupted = p->interrupted || (claimed != bytes && claimed - bytes <= p->ring_bytes);
        for (unsigned k = 0; k < 2; k++) {
            int64_t newest = (int64_t)atomic_load_explicit(&p->agent->tails[i].newest[k].newest,
                                                           memory_order_relaxed);
            if (atomic_load_explicit(&p->agent->tails[i].newest[k].bytes, memory_order_relaxed) ==
                    bytes &&
                newest >= p->newest[i] && newest <= INT64_MAX / 2) {
                p->newest[i] = newest;
                p->commits[i] = (uint8_t)k;
            }
        }
    }
    uint64_t words[SEGMENT_CONVERSION_WORDS];
    for (size_t i = 0; i < SEGMENT_CONVERSION_WORDS; i++)
        words[i] = atomic_load_explicit(&p->agent->conversion[i], memory_order_relaxed);
    memcpy(&p->conversion, words, sizeof p->conversion);
    // no agent writes such a conversion, so another process has
    if (!turns_valid(&p->conversion) || !conversion_sane(&p->conversion)) {
        p->conversion = (struct conversion){.lanes = 1, .unit = 1};
        p->interrupted = false;
    }
    p->taken_over = true;
    return true;
}

static void drain_slot(struct ingest *in, struct program *p, uint32_t slot, const struct ring *r,
                       uint64_t head)
{
    const char *base = (const char *)r + SLOT_DATA;
    uint64_t tail = p->tails[slot], mask = p->ring_bytes - 1, published = tail;
    const struct conversion *c = &p->conversion;
    struct taking t = {
        in,
        p,
        {p->clock == SEGMENT_CLOCK_TICKS, 2 * (slot * c->unit + c->turn) & (c->lanes - 1)},
        p->newest[slot],
        clock_map_real_ns(&c->map, c->now_ns) + INGEST_FUTURE_MAX_NS,
        slot};
    if (head - tail > p->ring_bytes || head % 8) {
        in->stats.dropped_corrupt +=
            head - tail > p->ring_bytes ? p->ring_bytes / 8 : (head - tail) / 8;
        publish_tail(p, slot, head & ~UINT64_C(7), t.newest);
        program_warn(p, "a ring's head");
        return;
    }
    while (tail != head) {
        uint64_t at = tail & mask, word, words;
        const uint64_t *data = (const uint64_t *)(const void *)(base + at);
        word = read_word(data);
        words = word >> 16 & 0xffff;
        if (__builtin_expect(
                words == 0 || words * 8 > head - tail || words * 8 > p->ring_bytes - at, 0))
            break;
        if (__builtin_expect((word & 0xff) == SEGMENT_POINT && words == 3, 1)) {
            uint32_t handle = (uint32_t)(word >> 32);
            uint64_t when = read_word(data + 1), bits = read_word(data + 2);
            const struct definition *d =
                handle < p->definition_count ? &p->definitions[handle] : NULL;
            if (__builtin_expect(d && d->state == DEFINITION_METRIC, 1)) {
                struct store_point *point = &in->points[in->point_count];
                memcpy(&point->value, &bits, sizeof bits);
                point->series = d->series;
                if (__builtin_expect(!time_of(&t, when, word >> 8 & 0xff, &point->t_ns), 0))
                    in->stats.dropped_limit++;
                else
                    in->point_count++;
            } else if (d && d->state == DEFINITION_LIMIT) {
                in->stats.dropped_limit++;
            } else if (!d || d->state != DEFINITION_OFF) {
                in->stats.dropped_corrupt += words;
            }
        } else if ((word & 0xff) == SEGMENT_SPAN_BEGIN && ends_soon(p, base, tail, words, head)) {
            // the end of the span comes later in the ring, and has the same data
        } else if (!take_record(&t, data, word, words)) {
            break;
        }
        tail += words * 8;
        // Publishes after every flush, so that the next agent repeats little, and at once after an
        // annotation, which would otherwise be stored twice.
        if (__builtin_expect(in->point_count == INGEST_BATCH_POINTS ||
                                 tail - published >= PUBLISH_BYTES || (word & 0xff) == SEGMENT_NOTE,
                             0)) {
            ingest_flush_points(in); // store them before the program may overwrite them
            publish_tail(p, slot, tail, t.newest);
            published = tail;
        }
    }
    if (tail != head) {
        in->stats.dropped_corrupt += (head - tail) / 8;
        program_warn(p, "a record");
    }
    ingest_flush_points(in);
    publish_tail(p, slot, head, t.newest);
}

// Returns the growth of a count in the program's memory. A correct count only grows; an impossible
// value counts as no growth.
static uint64_t growth(const struct ingest *in, uint64_t *last, const _Atomic uint64_t *count)
{
    enum { PLAUSIBLE_SHIFT = 48 };
    uint64_t now = atomic_load_explicit(count, memory_order_relaxed), more = now - *last;
    // an agent that is ending counts nothing: the next agent counts the growth
    if (!more || in->closing)
        return 0;
    *last = now;
    return more >> PLAUSIBLE_SHIFT ? 0 : more;
}

void program_counted(struct program *p)
{
    if (!p->owned)
        return;
    for (uint32_t slot = 0; slot < p->slots; slot++)
        if (atomic_load_explicit(&p->agent->tails[slot].dropped, memory_order_relaxed) !=
            p->dropped[slot])
            atomic_store_explicit(&p->agent->tails[slot].dropped, p->dropped[slot],
                                  memory_order_relaxed);
    atomic_store_explicit(&p->agent->dropped, p->lost, memory_order_relaxed);
    atomic_store_explicit(&p->agent->refused, p->refused, memory_order_relaxed);
}

void ingest_counts_recorded(struct ingest *in)
{
    for (size_t i = 0; i < in->program_count; i++)
        program_counted(in->programs[i]);
}

static const struct ring *ring_of(const struct program *p, uint32_t slot)
{
    return (const struct ring *)(const void *)(p->base + p->at.slots + p->at.slot_bytes * slot);
}

uint64_t program_spans_begun(const struct program *p, uint32_t slot)
{
    return *(const volatile uint64_t *)&ring_of(p, slot)->spans;
}

// Gives the rings their new turns. From here on, each ring stores times later than all times that
// were stored before.
static void begin_turns(struct program *p)
{
    int64_t newest = 0;
    for (uint32_t i = 0; i < p->slots; i++)
        newest = p->newest[i] > newest ? p->newest[i] : newest;
    for (uint32_t i = 0; i < p->slots; i++)
        publish_tail(p, i, p->tails[i], newest);
}

void program_read_heads(struct ingest *in, struct program *p)
{
    p->used = 0;
    if (program_own(in, p) != 0)
        return;
    const struct segment_header *h = (const struct segment_header *)(const void *)p->base;
    uint32_t used = 0, now;
    // Repeats until no ring is new: a thread whose ring we have not seen reads its clock after all
    // heads that we have read. Acquire: these rings have been laid out.
    while ((now = atomic_load_explicit(&h->slots_used, memory_order_acquire)) > used &&
           used < p->slots) {
        used = now < p->slots ? now : p->slots;
        for (uint32_t i = 0; i < used; i++) {
            // Acquire: the records before the head, and the definitions that they refer to, are
            // complete.
            p->heads[i] = atomic_load_explicit(&ring_of(p, i)->head, memory_order_acquire);
        }
    }
    p->used = used;
}

// The previous agent was killed while it stored records. The agent stores the claimed records
// again, with the same times, because some of them may be missing.
static void repeat_claimed(struct ingest *in, struct program *p)
{
    for (uint32_t i = 0; i < p->used; i++) {
        uint64_t claimed = atomic_load_explicit(&p->agent->tails[i].claimed, memory_order_relaxed);
        if (claimed != p->tails[i] && claimed - p->tails[i] <= p->heads[i] - p->tails[i] &&
            p->heads[i] - p->tails[i] <= p->ring_bytes)
            drain_slot(in, p, i, ring_of(p, i), claimed);
    }
    p->interrupted = false;
}

// An agent that takes over reads the wall clock anew, and its reading may be some nanoseconds, on a
// busy machine microseconds, earlier than that of the previous agent. So its times begin after the
// last time that the previous agent stored. If the clock was set back, the new times follow it.
static void begin_after_the_previous_agent(const struct ingest *in, struct program *p)
{
    int64_t newest = 0;
    for (uint32_t i = 0; i < p->slots; i++)
        newest = p->newest[i] > newest ? p->newest[i] : newest;
    int64_t first = clock_map_real_ns(&p->conversion.map, newest) - in->fit.map.real_minus_boot_ns;
    if (p->clock == SEGMENT_CLOCK_TICKS && newest && first > newest && first - newest < NS_PER_MS)
        for (uint32_t i = 0; i < p->slots; i++)
            publish_tail(p, i, p->tails[i], first);
    p->taken_over = false;
}

// Reads the clocks anew, because a round over many full rings may take long.
static void begin_conversion(const struct ingest *in, struct program *p)
{
    if (p->taken_over)
        begin_after_the_previous_agent(in, p);
    p->conversion.map = in->fit.map;
    p->conversion.start_ns = p->start_ns;
    p->conversion.now_ns = clock_read_ns(CLOCK_BOOTTIME);
    if (turns_share(in, p, p->used))
        begin_turns(p);
    publish_conversion(p);
}

size_t program_drain(struct ingest *in, struct program *p, double *fullest)
{
    if (!p->owned)
        return 0;
    const struct segment_header *h = (const struct segment_header *)(const void *)p->base;
    const uint64_t *heads = p->heads;
    uint64_t before = in->stats.points;
    bool any = false;
    if (__builtin_expect(p->interrupted, 0))
        repeat_claimed(in, p);
    for (uint32_t i = 0; i < p->used; i++)
        any = any || heads[i] != p->tails[i];
    if (any)
        begin_conversion(in, p);
    for (uint32_t i = 0; i < p->used; i++) {
        const struct ring *r = ring_of(p, i);
        in->stats.dropped_full += growth(in, &p->dropped[i], &r->dropped);
        if (heads[i] == p->tails[i])
            continue;
        double full = (double)(heads[i] - p->tails[i]) / (double)p->ring_bytes;
        if (full > *fullest)
            *fullest = full < 1 ? full : 1;
        // Release: the next agent that reads this claim also reads the conversion that belongs to
        // it. All records stored from here on are claimed.
        atomic_store_explicit(&p->agent->tails[i].claimed, heads[i], memory_order_release);
        drain_slot(in, p, i, r, heads[i]);
    }
    in->stats.dropped_full += growth(in, &p->lost, &h->dropped);
    in->stats.dropped_limit += growth(in, &p->refused, &h->refused);
    p->ended_early_count = 0;
    if (!atomic_load_explicit(&p->agent->asleep, memory_order_relaxed))
        atomic_store_explicit(&p->agent->asleep, 1, memory_order_relaxed);
    return in->stats.points - before;
}
