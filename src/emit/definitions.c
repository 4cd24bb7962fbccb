// definitions.c - defines metrics, groups, and the process itself: writes the meaning of each
// handle into the segment once.
//
// A definition is encoded directly after the published ones (segment.h has the layout). If its
// identity (name and tags) exists already, the bytes are not published, and the next definition
// overwrites them.
#include "base/storable_name.h"
#include "emit/ring.h"
#include "emit/tags.h"

#include "sonde.h"

#include <errno.h>
#include <string.h>

enum {
    IDENTITY = 6, // offset of the identity in a definition, which begins with `what`
    DEFINITION_FIXED = 8,
    DEFINITION_BYTES_MAX = DEFINITION_FIXED + 2 + SEGMENT_NAME_MAX +
                           SEGMENT_TAGS_MAX * (4 + SEGMENT_KEY_MAX + SEGMENT_VALUE_MAX) + 2 +
                           SEGMENT_UNIT_MAX + 2 + SEGMENT_TEXT_MAX + EMIT_STR_SLACK,
    GROUP_BYTES_MAX = DEFINITION_FIXED + 4 + 4 * SEGMENT_GROUP_MAX + 8,
};

_Static_assert(GROUP_BYTES_MAX <= DEFINITION_BYTES_MAX, "one bound for all");

// number of members of each group's handle; 0 for metrics
static uint16_t group_members[SEGMENT_DEFINITIONS_MAX];

struct draft {
    char *start, *at;
};

// Makes room for one more definition of any size, and for its gauge cell.
static bool reserve_next(struct emit_process *p)
{
    size_t end = (p->definitions_bytes + DEFINITION_BYTES_MAX + SEGMENT_PAGE - 1) &
                 ~(size_t)(SEGMENT_PAGE - 1);
    if (end > p->definitions_reserved) {
        if (!emit_reserve(&p->segment.file, p->at.definitions + p->definitions_reserved,
                          end - p->definitions_reserved))
            return false;
        p->definitions_reserved = end;
    }
    if ((p->definitions + 1) * sizeof(double) > p->gauges_reserved) {
        if (!emit_reserve(&p->segment.file, p->at.gauges + p->gauges_reserved, SEGMENT_PAGE))
            return false;
        p->gauges_reserved += SEGMENT_PAGE;
    }
    return true;
}

static bool draft_begin(struct emit_process *p, struct draft *d, enum segment_what what,
                        unsigned kind, int level, unsigned tags)
{
    if (p->definitions >= SEGMENT_DEFINITIONS_MAX ||
        SEGMENT_DEFINITIONS_BYTES - p->definitions_bytes < DEFINITION_BYTES_MAX) {
        errno = ENOSPC;
        return false;
    }
    if (!reserve_next(p)) {
        errno = ENOMEM;
        return false;
    }
    d->start = p->base + p->at.definitions + p->definitions_bytes;
    d->at = d->start + 4;
    *d->at++ = (char)kind;
    *d->at++ = (char)level;
    *d->at++ = (char)what;
    *d->at++ = (char)tags;
    return true;
}

static void draft_tag(struct draft *d, struct sonde_tag tag)
{
    d->at = emit_put_str(d->at, str_of(tag.key));
    d->at = emit_put_str(d->at, str_of(tag.value));
}

// Publishes the draft, unless a definition with its identity exists. Returns the handle, or -1 if
// memory is exhausted.
static int64_t draft_publish(struct emit_process *p, struct draft *d, size_t identity_bytes)
{
    bool added;
    uint64_t *handle =
        map_add(&p->by_identity, (struct str){d->start + IDENTITY, identity_bytes}, &added);
    if (!handle) {
        errno = ENOMEM;
        return -1;
    }
    if (!added)
        return (int64_t)*handle;
    while ((d->at - d->start) % 8)
        *d->at++ = 0;
    uint32_t size = (uint32_t)(d->at - d->start);
    memcpy(d->start, &size, sizeof size);
    *handle = p->definitions++;
    p->definitions_bytes += size;
    // Release: an agent that reads this size also reads the whole definition.
    atomic_store_explicit(&p->header->definitions_bytes, p->definitions_bytes,
                          memory_order_release);
    // Release: a thread for which this handle is valid also finds the memory of its gauge.
    atomic_store_explicit(&p->cells_end, p->definitions, memory_order_release);
    return (int64_t)*handle;
}

static void refuse(struct emit_process *p, const char *what, const char *name, const char *why)
{
    atomic_fetch_add_explicit(&p->header->refused, 1, memory_order_relaxed);
    emit_say("%s \"%.60s\" is off: %s", what, name ? name : "", why);
}

bool emit_define_process(struct emit_process *p)
{
    static struct emit_tag_store text; // a thread may have little stack, and this one has the lock
    struct sonde_tag tags[SEGMENT_TAGS_MAX];
    unsigned refused = 0;
    p->process_tags = emit_tags_of_process(tags, &text, &refused);
    atomic_fetch_add_explicit(&p->header->refused, refused, memory_order_relaxed);
    struct draft d;
    if (!draft_begin(p, &d, SEGMENT_PROCESS, 0, 0, p->process_tags))
        return false;
    d.at =
        emit_put_str(d.at, str_slice(str_of(program_invocation_short_name), 0, SEGMENT_NAME_MAX));
    for (unsigned i = 0; i < p->process_tags; i++)
        draft_tag(&d, tags[i]);
    size_t identity = (size_t)(d.at - d.start) - IDENTITY;
    d.at = emit_put_str(d.at, STR(""));
    d.at = emit_put_str(d.at, STR(""));
    return draft_publish(p, &d, identity) == 0;
}

static const char *skip_str(const char *at)
{
    uint16_t size;
    memcpy(&size, at, sizeof size);
    return at + sizeof size + size;
}

// Returns the end of the identity of a published definition. *members gets the number of a group's
// members.
static const char *identity_end(const char *start, uint32_t *members)
{
    const char *at = start + DEFINITION_FIXED;
    unsigned what = (unsigned char)start[IDENTITY], tags = (unsigned char)start[IDENTITY + 1];
    *members = 0;
    if (what == SEGMENT_GROUP) {
        memcpy(members, at, sizeof *members);
        return at + sizeof *members + *members * sizeof(sonde_handle);
    }
    at = skip_str(at);
    for (unsigned i = 0; i < 2 * tags; i++)
        at = skip_str(at);
    return at;
}

void emit_definitions_recover(struct emit_process *p)
{
    size_t end = atomic_load_explicit(&p->header->definitions_bytes, memory_order_relaxed);
    p->by_identity = (struct map){0}; // the old map may be incomplete
    p->definitions = 0;
    for (size_t at = 0; at < end;) {
        const char *start = p->base + p->at.definitions + at;
        uint32_t size, members;
        bool added;
        memcpy(&size, start, sizeof size);
        struct str identity = {start + IDENTITY, 0};
        identity.size = (size_t)(identity_end(start, &members) - identity.data);
        uint64_t *handle = map_add(&p->by_identity, identity, &added);
        if (handle)
            *handle = p->definitions;
        group_members[p->definitions++] = (uint16_t)members;
        at += size;
    }
    p->definitions_bytes = end;
}

// Returns NULL for a valid metric, otherwise the error.
static const char *check_metric(const struct sonde_metric *m, unsigned process_tags)
{
    enum { TAGS_OF_AGENT = 1 }; // the agent adds `host`
    if (!m->name || !storable_name_is(str_of(m->name), SEGMENT_NAME_MAX))
        return "a name is 1 to 255 of A-Z a-z 0-9 _ . / : - and letters";
    if (m->unit && strlen(m->unit) > SEGMENT_UNIT_MAX)
        return "its unit is longer than 32 bytes";
    if (m->kind != SONDE_GAUGE && m->kind != SONDE_COUNTER)
        return "its kind is neither SONDE_GAUGE nor SONDE_COUNTER";
    if (m->tag_count + process_tags + TAGS_OF_AGENT > SEGMENT_TAGS_MAX)
        return "more than 16 tags, with host and those of the process";
    for (size_t i = 0; i < m->tag_count; i++) {
        if (!emit_tag_valid(&m->tags[i]))
            return "a tag's key is 1 to 128 of A-Z a-z 0-9 _ . / : - and letters, its value at "
                   "most 1024 bytes";
        for (size_t j = 0; j < i; j++)
            if (strcmp(m->tags[i].key, m->tags[j].key) == 0)
                return "it has the same tag twice";
    }
    return NULL;
}

// Sorts tags by key, so that their order makes no difference, and leaves out tags without a value.
static unsigned sorted_tags(const struct sonde_metric *m, struct sonde_tag tags[SEGMENT_TAGS_MAX])
{
    unsigned count = 0;
    for (size_t i = 0; i < m->tag_count; i++) {
        unsigned at = count;
        if (!*m->tags[i].value)
            continue;
        for (; at > 0 && strcmp(tags[at - 1].key, m->tags[i].key) > 0; at--)
            tags[at] = tags[at - 1];
        tags[at] = m->tags[i];
        count++;
    }
    return count;
}

sonde_handle sonde_define_sized(const struct sonde_metric *given, size_t size)
{
    struct emit_process *p = &emit_process;
    struct sonde_metric m = {0};
    if (!given || !emit_on())
        return 0;
    // ignore fields that a program for a newer libsonde has added
    memcpy(&m, given, size < sizeof m ? size : sizeof m);
    if (m.level > p->level)
        return 0;
    const char *wrong = check_metric(&m, p->process_tags);
    if (wrong) {
        refuse(p, "metric", m.name, wrong);
        return 0;
    }
    struct sonde_tag tags[SEGMENT_TAGS_MAX];
    unsigned tag_count = sorted_tags(&m, tags);
    emit_lock(p);
    struct draft d;
    int64_t handle = -1;
    if (draft_begin(p, &d, SEGMENT_METRIC, (unsigned)m.kind, m.level < 1 ? 1 : m.level,
                    tag_count)) {
        d.at = emit_put_str(d.at, str_of(m.name));
        for (unsigned i = 0; i < tag_count; i++)
            draft_tag(&d, tags[i]);
        size_t identity = (size_t)(d.at - d.start) - IDENTITY;
        d.at = emit_put_str(d.at, str_of(m.unit ? m.unit : ""));
        d.at = emit_put_str(d.at, emit_cut(str_of(m.help ? m.help : ""), SEGMENT_TEXT_MAX));
        handle = draft_publish(p, &d, identity);
    }
    emit_unlock(p);
    if (handle < 0)
        refuse(p, "metric", m.name, errno == ENOMEM ? "no memory" : "this process has too many");
    return handle < 0 ? 0 : (sonde_handle)handle;
}

sonde_handle sonde_gauge(const char *name, const char *unit)
{
    struct sonde_metric m = {.name = name, .unit = unit, .kind = SONDE_GAUGE};
    return sonde_define(&m);
}

sonde_handle sonde_counter(const char *name, const char *unit)
{
    struct sonde_metric m = {.name = name, .unit = unit, .kind = SONDE_COUNTER};
    return sonde_define(&m);
}

sonde_handle sonde_group(const sonde_handle *metrics, size_t count)
{
    struct emit_process *p = &emit_process;
    if (!emit_on())
        return 0;
    size_t live = 0;
    for (size_t i = 0; i < count; i++)
        live += metrics[i] != 0;
    if (!live)
        return 0;
    if (count > SEGMENT_GROUP_MAX) {
        refuse(p, "group", "", "it has more than 4096 metrics");
        return 0;
    }
    emit_lock(p);
    struct draft d;
    int64_t handle = -1;
    if (draft_begin(p, &d, SEGMENT_GROUP, 0, 0, 0)) {
        uint32_t members = (uint32_t)count;
        memcpy(d.at, &members, sizeof members);
        memcpy(d.at + sizeof members, metrics, count * sizeof *metrics);
        d.at += sizeof members + count * sizeof *metrics;
        handle = draft_publish(p, &d, (size_t)(d.at - d.start) - IDENTITY);
        if (handle >= 0)
            group_members[handle] = (uint16_t)count;
    }
    emit_unlock(p);
    if (handle < 0)
        refuse(p, "group", "",
               errno == ENOMEM ? "no memory" : "this process has too many definitions");
    return handle < 0 ? 0 : (sonde_handle)handle;
}

unsigned emit_group_members(uint32_t group)
{
    return group < SEGMENT_DEFINITIONS_MAX ? group_members[group] : 0;
}
