#include "fake_store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void *grow(void *array, size_t count, size_t *capacity, size_t each)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? *capacity * 2 : 16;
    array = realloc(array, *capacity * each);
    assert(array);
    return array;
}

struct store *fake_store_open(void)
{
    struct store *s = calloc(1, sizeof *s);
    assert(s);
    return s;
}

void fake_store_close(struct store *s)
{
    for (size_t i = 0; i < s->series_count; i++) {
        free(s->series[i].name);
        free(s->series[i].labels);
        free(s->series[i].unit);
    }
    for (size_t i = 0; i < s->metric_count; i++)
        free(s->metrics[i]);
    for (size_t i = 0; i < s->set_count; i++)
        free(s->sets[i].series);
    for (size_t i = 0; i < s->event_count; i++) {
        free(s->events[i].text);
        free(s->events[i].labels);
    }
    free(s->series);
    free(s->metrics);
    free(s->metric_facts);
    free(s->sets);
    free(s->events);
    free(s->kept);
    free(s);
}

static int by_key(const void *a, const void *b)
{
    const struct store_label *x = a, *y = b;
    return str_compare(x->key, y->key);
}

static char *labels_text(const struct store_label *labels, size_t count)
{
    struct store_label sorted[STORE_LABELS_MAX + 1];
    assert(count <= STORE_LABELS_MAX);
    if (count)
        memcpy(sorted, labels, count * sizeof *labels);
    qsort(sorted, count, sizeof *sorted, by_key);
    struct buf b = {0};
    for (size_t i = 0; i < count; i++)
        buf_printf(&b, "%s%.*s=%.*s", i ? "," : "", STR_ARG(sorted[i].key),
                   STR_ARG(sorted[i].value));
    char *text = strdup(buf_cstr(&b));
    buf_free(&b);
    assert(text);
    return text;
}

int store_define_metric(struct store *s, const struct store_metric *m, uint32_t *id)
{
    if (m->name.size == 0)
        return -EINVAL;
    if (m->name.size > STORE_NAME_MAX || m->unit.size > STORE_UNIT_MAX ||
        m->help.size > STORE_TEXT_MAX)
        return -E2BIG;
    for (size_t i = 0; i < s->metric_count; i++)
        if (str_eq(str_of(s->metrics[i]), m->name)) {
            *id = (uint32_t)i;
            return 0;
        }
    if (s->metric_limit && s->metric_count >= s->metric_limit)
        return -ENOSPC;
    size_t capacity = s->metric_capacity;
    s->metrics = grow(s->metrics, s->metric_count, &capacity, sizeof *s->metrics);
    s->metric_facts =
        grow(s->metric_facts, s->metric_count, &s->metric_capacity, sizeof *s->metric_facts);
    s->metrics[s->metric_count] = strndup(m->name.data, m->name.size);
    s->metric_facts[s->metric_count] = *m;
    *id = (uint32_t)s->metric_count++;
    return 0;
}

int store_define_series(struct store *s, uint32_t metric, const struct store_label *labels,
                        size_t count, uint32_t *id)
{
    if (metric >= s->metric_count)
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        if (labels[i].key.size > STORE_KEY_MAX || labels[i].value.size > STORE_VALUE_MAX)
            return -E2BIG;
        for (size_t j = 0; j < i; j++)
            if (str_eq(labels[i].key, labels[j].key))
                return -EINVAL;
    }
    char *text = labels_text(labels, count);
    // Searches the newest series first, so that tests with many series stay fast.
    for (size_t i = 0; i < s->series_count && i < 1000; i++) {
        size_t k = s->series_count - 1 - i;
        if (strcmp(s->series[k].name, s->metrics[metric]) == 0 &&
            strcmp(s->series[k].labels, text) == 0) {
            *id = (uint32_t)k;
            free(text);
            return 0;
        }
    }
    if (s->series_limit && s->series_count >= s->series_limit) {
        free(text);
        return -ENOSPC;
    }
    s->series = grow(s->series, s->series_count, &s->series_capacity, sizeof *s->series);
    s->series[s->series_count] = (struct fake_series){.name = strdup(s->metrics[metric]),
                                                      .labels = text,
                                                      .unit = strdup(""),
                                                      .kind = s->metric_facts[metric].kind};
    *id = (uint32_t)s->series_count++;
    return 0;
}

int store_define_set(struct store *s, const uint32_t *series, size_t count, uint32_t *id)
{
    if (count == 0 || count > STORE_SET_SERIES_MAX)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (series[i] >= s->series_count)
            return -EINVAL;
    s->sets = grow(s->sets, s->set_count, &s->set_capacity, sizeof *s->sets);
    s->sets[s->set_count].series = malloc(count * sizeof *series);
    assert(s->sets[s->set_count].series);
    memcpy(s->sets[s->set_count].series, series, count * sizeof *series);
    s->sets[s->set_count].count = count;
    *id = (uint32_t)s->set_count++;
    return 0;
}

static void add(struct store *s, uint32_t series, int64_t t_ns, double value)
{
    struct fake_series *f = &s->series[series];
    if (s->keep) {
        s->kept = grow(s->kept, s->kept_count, &s->kept_capacity, sizeof *s->kept);
        s->kept[s->kept_count++] = (struct store_point){t_ns, value, series};
    }
    if (!f->count++) {
        f->first = value;
        f->first_t_ns = t_ns;
    } else {
        f->falls += value < f->last;
        f->time_falls += t_ns < f->last_t_ns;
    }
    f->sum += value;
    f->last = value;
    f->last_t_ns = t_ns;
    s->points++;
}

int store_append_row(struct store *s, uint32_t set, int64_t t_ns, const double *values)
{
    if (set >= s->set_count)
        return -EINVAL;
    s->rows++;
    for (size_t i = 0; i < s->sets[set].count; i++)
        if (!store_is_missing(values[i]))
            add(s, s->sets[set].series[i], t_ns, values[i]);
    return 0;
}

int store_append(struct store *s, uint32_t series, int64_t t_ns, double value)
{
    assert(series < s->series_count);
    add(s, series, t_ns, value);
    return 0;
}

int store_append_points(struct store *s, const struct store_point *points, size_t count,
                        size_t *refused)
{
    for (size_t i = 0; i < count; i++) {
        assert(points[i].series < s->series_count);
        add(s, points[i].series, points[i].t_ns, points[i].value);
    }
    if (refused)
        *refused = 0;
    return 0;
}

int store_append_event(struct store *s, const struct store_event *event)
{
    struct fake_event *e = NULL;
    s->events_appended++;
    for (size_t i = 0; event->kind == STORE_SPAN && i < s->event_count && !e; i++)
        if (s->events[i].kind == STORE_SPAN && s->events[i].id == event->id)
            e = &s->events[i];
    if (!e) {
        s->events = grow(s->events, s->event_count, &s->event_capacity, sizeof *s->events);
        e = &s->events[s->event_count++];
        memset(e, 0, sizeof *e);
    }
    free(e->text);
    free(e->labels);
    *e = (struct fake_event){event->kind,
                             event->start_ns,
                             event->end_ns,
                             event->id,
                             event->parent,
                             NULL,
                             labels_text(event->labels, event->label_count)};
    e->text = strndup(event->text.data, event->text.size);
    return 0;
}

struct fake_series *fake_find(const struct store *s, const char *name, const char *labels)
{
    for (size_t i = 0; i < s->series_count; i++)
        if (strcmp(s->series[i].name, name) == 0 &&
            (!labels || strcmp(s->series[i].labels, labels) == 0))
            return &s->series[i];
    return NULL;
}

uint64_t fake_count(const struct store *s, const char *name)
{
    uint64_t count = 0;
    for (size_t i = 0; i < s->series_count; i++)
        if (strcmp(s->series[i].name, name) == 0)
            count += s->series[i].count;
    return count;
}

struct fake_event *fake_event(const struct store *s, const char *text, size_t nth)
{
    for (size_t i = 0; i < s->event_count; i++)
        if (strcmp(s->events[i].text, text) == 0 && nth-- == 0)
            return &s->events[i];
    return NULL;
}
