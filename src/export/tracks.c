#include "export/tracks.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

void tracks_free(struct tracks *t)
{
    for (size_t i = 0; i < t->thread_count; i++) {
        for (size_t k = 0; k < t->threads[i]->lane_count; k++)
            free(t->threads[i]->lanes[k].ends);
        free(t->threads[i]->lanes);
    }
    free(t->threads);
    map_free(&t->processes);
    map_free(&t->thread_map);
    arena_free(&t->arena);
    buf_free(&t->key);
}

uint32_t tracks_number(struct tracks *t)
{
    return ++t->last;
}

struct str tracks_label(const struct store_label *labels, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(labels[i].key, key))
            return labels[i].value;
    return STR("");
}

// Returns the number of the object with this key. *added: it is new, and the key was copied.
static uint64_t *place_of(struct tracks *t, struct map *m, struct str key, bool *added)
{
    uint64_t *known = map_get(m, key);
    *added = !known;
    if (known)
        return known;
    struct str kept = arena_str(&t->arena, key);
    return kept.data ? map_add(m, kept, NULL) : NULL;
}

int tracks_process(struct tracks *t, struct str host, struct track *out)
{
    *out = (struct track){0};
    uint64_t *number = place_of(t, &t->processes, host, &out->new_process);
    if (!number)
        return -ENOMEM;
    if (out->new_process)
        *number = tracks_number(t);
    out->process = (uint32_t)*number;
    return 0;
}

static int new_lane(struct tracks *t, struct track_thread *thread, uint32_t number)
{
    if (!array_room_zeroed(&thread->lanes, &thread->lane_capacity, thread->lane_count + 1,
                           sizeof *thread->lanes))
        return -ENOMEM;
    thread->lanes[thread->lane_count++].number = number ? number : tracks_number(t);
    return 0;
}

static int new_thread(struct tracks *t, uint32_t process, struct str name, uint64_t *index)
{
    struct track_thread *thread = arena_zalloc(&t->arena, sizeof *thread);
    if (!thread || !array_room(&t->threads, &t->thread_capacity, t->thread_count + 1,
                               sizeof(struct track_thread *)))
        return -ENOMEM;
    *index = t->thread_count;
    t->threads[t->thread_count++] = thread;
    *thread = (struct track_thread){
        .number = tracks_number(t), .process = process, .name = arena_str(&t->arena, name)};
    return thread->name.data ? new_lane(t, thread, thread->number) : -ENOMEM;
}

static int find_thread(struct tracks *t, const struct export_event *event, struct track *out,
                       struct track_thread **thread)
{
    static const struct str keys[] = {STR("rank"), STR("worker"), STR("pid")};
    const struct store_event *v = &event->event;
    struct str value = STR("");
    size_t i = 0;
    int rc = tracks_process(t, event->node, out);
    if (rc)
        return rc;
    for (; i < sizeof keys / sizeof *keys && !value.size; i++)
        value = tracks_label(v->labels, v->label_count, keys[i]);
    t->key.size = 0;
    buf_printf(&t->key, "%u ", out->process);
    size_t name_at = t->key.size;
    if (value.size)
        buf_printf(&t->key, "%.*s %.*s", STR_ARG(keys[i - 1]), STR_ARG(value));
    else
        buf_add_str(&t->key, STR("spans"));
    if (t->key.failed)
        return -ENOMEM;
    uint64_t *index = place_of(t, &t->thread_map, buf_str(&t->key), &out->new_thread);
    if (!index)
        return -ENOMEM;
    if (out->new_thread)
        rc = new_thread(t, out->process, str_slice(buf_str(&t->key), name_at, t->key.size), index);
    if (rc)
        return rc;
    *thread = t->threads[*index];
    out->thread = out->lane = (*thread)->number;
    out->thread_name = (*thread)->name;
    return 0;
}

int tracks_thread(struct tracks *t, const struct export_event *event, struct track *out)
{
    struct track_thread *thread;
    return find_thread(t, event, out, &thread);
}

int tracks_lane(struct tracks *t, const struct export_event *event, struct track *out)
{
    struct track_thread *thread = NULL;
    const struct store_event *v = &event->event;
    int rc = find_thread(t, event, out, &thread);
    for (size_t i = 0; !rc; i++) {
        if (i == TRACKS_LANES_MAX)
            return -E2BIG;
        out->new_lane = i == thread->lane_count;
        if (out->new_lane && (rc = new_lane(t, thread, 0)))
            break;
        struct track_lane *lane = &thread->lanes[i];
        while (lane->open && lane->ends[lane->open - 1] <= v->start_ns)
            lane->open--;
        if (lane->open && lane->ends[lane->open - 1] < v->end_ns)
            continue;
        if (!array_room(&lane->ends, &lane->capacity, lane->open + 1, sizeof *lane->ends))
            return -ENOMEM;
        lane->ends[lane->open++] = v->end_ns;
        out->lane = lane->number;
        return 0;
    }
    return rc;
}

void tracks_counter_name(struct buf *out, const struct export_series *series)
{
    buf_add_str(out, series->metric->name);
    for (size_t i = 0; i < series->label_count; i++)
        if (!str_eq(series->labels[i].key, STR("host")))
            buf_printf(out, " %.*s=%.*s", STR_ARG(series->labels[i].key),
                       STR_ARG(series->labels[i].value));
}
