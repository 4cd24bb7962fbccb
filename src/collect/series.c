// series.c - the series of a source: plain rows first, then the tagged rows of each instance.
//
//   values:  plain 0 … plain n-1 │ instance 0: row 0 … row k-1 │ instance 1: row 0 … row k-1 │ …
//
// Series are rebuilt between two samples when instances come or go; otherwise no memory is
// allocated.
#include "base/array.h"
#include "collect/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_tagged(const struct source *s, size_t row)
{
    size_t symbol = s->first_row + row;
    return s->kind->keys[0] && symbol >= s->kind->tagged_from && symbol <= s->kind->tagged_to;
}

int series_begin(struct source *s)
{
    s->row_count = catalogue_rows(source_rows(s->kind), &s->first_row);
    s->place = malloc((s->row_count + 1) * sizeof *s->place);
    if (!s->place)
        return -ENOMEM;
    for (size_t i = 0; i < s->row_count; i++) {
        size_t *rows = is_tagged(s, i) ? &s->tagged_rows : &s->plain_rows;
        bool ours =
            is_tagged(s, i) || s->kind->own_series || str_eq(source_rows(s->kind), s->kind->name);
        bool wanted = ours && catalogue_metrics[s->first_row + i].metric.level <= s->options->level;
        s->place[i] = wanted ? (int16_t)(*rows)++ : -1;
    }
    return 0;
}

static size_t fill_series(struct source *s, struct collect_series *series,
                          struct store_label *labels)
{
    const struct collect_options *o = s->options;
    size_t count = s->plain_rows;
    for (size_t i = 0; i < s->row_count; i++)
        if (s->place[i] >= 0 && !is_tagged(s, i))
            series[s->place[i]] = (struct collect_series){&catalogue_metrics[s->first_row + i],
                                                          o->labels, o->label_count};
    for (size_t k = 0; k < s->instance_count; k++) {
        struct source_instance *instance = &s->instances[k];
        instance->base = -1;
        if (instance->ignored || count + s->tagged_rows > STORE_SET_SERIES_MAX)
            continue;
        instance->base = (int32_t)count;
        size_t label_count = 0;
        for (; label_count < o->label_count; label_count++)
            labels[label_count] = o->labels[label_count];
        for (int tag = 0; tag < SOURCE_TAGS_MAX && s->kind->keys[tag]; tag++)
            if (instance->tags[tag][0])
                labels[label_count++] =
                    (struct store_label){str_of(s->kind->keys[tag]), str_of(instance->tags[tag])};
        for (size_t i = 0; i < s->row_count; i++)
            if (s->place[i] >= 0 && is_tagged(s, i))
                series[count + (size_t)s->place[i]] = (struct collect_series){
                    &catalogue_metrics[s->first_row + i], labels, label_count};
        labels += label_count;
        count += s->tagged_rows;
    }
    return count;
}

int series_make(struct source *s)
{
    if (s->kind->own_series)
        return 0;
    size_t most = s->plain_rows + s->instance_count * s->tagged_rows;
    struct collect_series *series = malloc((most + 1) * sizeof *series);
    struct store_label *labels = malloc(
        (s->instance_count * (s->options->label_count + SOURCE_TAGS_MAX) + 1) * sizeof *labels);
    if (!series || !labels) {
        free(series);
        free(labels);
        return -ENOMEM;
    }
    s->count = fill_series(s, series, labels);
    free(s->series);
    free(s->labels);
    s->series = series;
    s->labels = labels;
    s->changed = false;
    return 0;
}

void series_free(struct source *s)
{
    free(s->place);
    free(s->series);
    free(s->labels);
    free(s->instances);
}

// ---- instances ----

static bool has_tag(const char *tag, struct str value)
{
    return strncmp(tag, value.data ? value.data : "", value.size) == 0 && tag[value.size] == 0;
}

ptrdiff_t source_find(struct source *s, struct str first, struct str second)
{
    if (first.size >= SOURCE_TAG_SIZE || second.size >= SOURCE_TAG_SIZE)
        return -1;
    for (size_t tried = 0; tried < s->instance_count; tried++) {
        size_t at = s->hint < s->instance_count ? s->hint : 0;
        struct source_instance *instance = &s->instances[at];
        s->hint = at + 1;
        if (has_tag(instance->tags[0], first) && has_tag(instance->tags[1], second)) {
            instance->unseen = 0;
            return (ptrdiff_t)at;
        }
    }
    return -1;
}

static bool set_tag(char tag[SOURCE_TAG_SIZE], struct str value)
{
    if (value.size >= SOURCE_TAG_SIZE || (value.size && memchr(value.data, 0, value.size)))
        return false;
    if (value.size)
        memcpy(tag, value.data, value.size);
    tag[value.size] = 0;
    return true;
}

ptrdiff_t source_instance(struct source *s, struct str first, struct str second)
{
    ptrdiff_t known = source_find(s, first, second);
    if (known >= 0)
        return s->instances[known].ignored ? -1 : known;
    struct source_instance instance = {.base = -1};
    if (!set_tag(instance.tags[0], first) || !set_tag(instance.tags[1], second))
        return -1;
    if (s->instance_count == SOURCE_INSTANCES_MAX ||
        s->plain_rows + (s->instance_count + 1) * s->tagged_rows > STORE_SET_SERIES_MAX)
        return source_fail(s, -1, "there are too many of tag '%s': the rest is left out",
                           s->kind->keys[0]);
    if (!array_room(&s->instances, &s->instance_capacity, s->instance_count + 1,
                    sizeof *s->instances))
        return -1;
    s->instances[s->instance_count] = instance;
    s->changed = true;
    return (ptrdiff_t)s->instance_count++;
}

void source_ignore(struct source *s, ptrdiff_t instance)
{
    s->instances[instance].ignored = true;
}

void source_forget_unseen(struct source *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->instance_count; i++) {
        if (s->instances[i].unseen++ > SOURCE_GONE_AFTER) {
            s->changed = true;
            continue;
        }
        if (kept != i)
            s->instances[kept] = s->instances[i];
        kept++;
    }
    s->instance_count = kept;
}
