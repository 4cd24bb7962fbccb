#include "export/long_table.h"

#include "base/array.h"
#include "export/keys.h"

#include <errno.h>
#include <stdlib.h>

const struct str long_column_names[LONG_EVENT_TAGS] = {
    [LONG_TIME] = STR("time"),   [LONG_KIND] = STR("kind"),     [LONG_NAME] = STR("name"),
    [LONG_VALUE] = STR("value"), [LONG_UNIT] = STR("unit"),     [LONG_END] = STR("end"),
    [LONG_ID] = STR("id"),       [LONG_PARENT] = STR("parent"), [LONG_NODE] = STR("node"),
};

// Points have no parents and ids: these columns are 0.
static const int64_t no_ids[EXPORT_POINTS_MAX];

static const enum table_type types[LONG_EVENT_TAGS] = {
    [LONG_TIME] = TABLE_TIME,    [LONG_KIND] = TABLE_TEXT, [LONG_NAME] = TABLE_TEXT,
    [LONG_VALUE] = TABLE_DOUBLE, [LONG_UNIT] = TABLE_TEXT, [LONG_END] = TABLE_TIME,
    [LONG_ID] = TABLE_ID,        [LONG_PARENT] = TABLE_ID, [LONG_NODE] = TABLE_TEXT};

// True if the column may have empty cells. Ids are never empty, because readers convert whole
// numbers with empty cells to doubles, which have too few bits for an id.
static bool is_optional(size_t column, bool events)
{
    if (!events || column >= LONG_EVENT_TAGS)
        return column == LONG_UNIT || column >= LONG_TAGS;
    return column == LONG_VALUE || column == LONG_UNIT || column == LONG_END || column == LONG_NODE;
}

static struct str tag_name(struct long_table *t, struct str key)
{
    return key_needs_prefix(key, long_column_names, LONG_EVENT_TAGS)
               ? str_of(arena_printf(&t->names, KEY_PREFIX "%.*s", STR_ARG(key)))
               : key;
}

static int event_room(struct long_table *t)
{
    t->starts = arena_array(&t->names, LONG_EVENTS_MAX, sizeof *t->starts);
    t->ends = arena_array(&t->names, LONG_EVENTS_MAX, sizeof *t->ends);
    t->ids = arena_array(&t->names, LONG_EVENTS_MAX, sizeof *t->ids);
    t->parents = arena_array(&t->names, LONG_EVENTS_MAX, sizeof *t->parents);
    t->numbers = arena_zalloc(&t->names, t->count * sizeof *t->numbers);
    if (!t->starts || !t->ends || !t->ids || !t->parents || !t->numbers)
        return -ENOMEM;
    for (size_t i = 0; i < t->count; i++) {
        if (t->columns[i].type != TABLE_TEXT)
            continue;
        t->numbers[i] = arena_array(&t->names, LONG_EVENTS_MAX, sizeof **t->numbers);
        if (!t->numbers[i])
            return -ENOMEM;
    }
    return 0;
}

int long_table_begin(struct long_table *t, const struct export_plan *plan)
{
    *t = (struct long_table){.tags = plan->events ? LONG_EVENT_TAGS : LONG_TAGS};
    t->count = t->tags + plan->key_count;
    t->columns = arena_zalloc(&t->names, t->count * sizeof *t->columns);
    t->cells = arena_zalloc(&t->names, t->count * sizeof *t->cells);
    t->words = arena_zalloc(&t->names, t->count * sizeof *t->words);
    if (!t->columns || !t->cells || !t->words)
        return -ENOMEM;
    for (size_t i = 0; i < t->count; i++) {
        bool tag = i >= t->tags;
        t->columns[i].name = tag ? tag_name(t, plan->keys[i - t->tags]) : long_column_names[i];
        t->columns[i].type = tag ? TABLE_TEXT : types[i];
        t->columns[i].optional = is_optional(i, plan->events);
        if (!t->columns[i].name.data)
            return -ENOMEM;
    }
    return plan->events ? event_room(t) : 0;
}

static void free_words(struct long_table *t)
{
    for (size_t i = 0; t->words && i < t->count; i++) {
        map_free(&t->words[i].numbers);
        free(t->words[i].list);
        t->words[i] = (struct long_words){0};
    }
}

void long_table_free(struct long_table *t)
{
    free_words(t);
    arena_free(&t->names);
    arena_free(&t->text);
}

void long_table_forget_words(struct long_table *t)
{
    free_words(t);
    arena_free(&t->text);
    for (size_t i = 0; i < t->count; i++) {
        t->columns[i].words = NULL;
        t->columns[i].word_count = 0;
    }
}

// Returns the word's number in the column's dictionary, and adds a new word. Returns -ENOMEM on
// failure.
static int32_t number_of(struct long_table *t, size_t column, struct str word)
{
    struct long_words *w = &t->words[column];
    uint64_t *known = map_get(&w->numbers, word);
    if (known)
        return (int32_t)*known;
    if (w->count == INT32_MAX || !array_room(&w->list, &w->capacity, w->count + 1, sizeof *w->list))
        return -ENOMEM;
    struct str kept = arena_str(&t->text, word);
    uint64_t *number = kept.data ? map_add(&w->numbers, kept, NULL) : NULL;
    if (!number)
        return -ENOMEM;
    *number = w->count;
    w->list[w->count++] = kept;
    t->columns[column].words = w->list;
    t->columns[column].word_count = w->count;
    return (int32_t)*number;
}

// Returns the number of the label whose key is that of tag column `tag`, or TABLE_NULL if there is
// none. Keys and labels are sorted; *next is the first label that may have the key.
static int32_t label_number(struct long_table *t, struct str key, size_t tag,
                            const struct store_label *labels, size_t count, size_t *next)
{
    while (*next < count && str_compare(labels[*next].key, key) < 0)
        ++*next;
    if (*next == count || !str_eq(labels[*next].key, key))
        return TABLE_NULL;
    return number_of(t, t->tags + tag, labels[(*next)++].value);
}

int long_table_series(struct long_table *t, const struct export_plan *plan,
                      const struct export_series *series)
{
    bool counter = series->metric->kind == STORE_COUNTER;
    struct str unit = series->metric->unit;
    struct table_cells *cells = t->cells;
    size_t next = 0;
    for (size_t i = 0; i < t->count; i++)
        cells[i] = (struct table_cells){.constant = TABLE_NULL};
    cells[LONG_KIND].constant = number_of(t, LONG_KIND, counter ? STR("counter") : STR("gauge"));
    cells[LONG_NAME].constant = number_of(t, LONG_NAME, series->metric->name);
    if (unit.size)
        cells[LONG_UNIT].constant = number_of(t, LONG_UNIT, unit);
    for (size_t i = 0; i < plan->key_count; i++)
        cells[t->tags + i].constant =
            label_number(t, plan->keys[i], i, series->labels, series->label_count, &next);
    if (t->tags == LONG_EVENT_TAGS) {
        cells[LONG_END].empty = true;
        cells[LONG_ID].integers = cells[LONG_PARENT].integers = no_ids;
    }
    for (size_t i = 0; i < t->count; i++)
        if (cells[i].constant == -ENOMEM)
            return -ENOMEM;
    return 0;
}

void long_table_points(struct long_table *t, const struct export_points *p)
{
    t->cells[LONG_TIME].integers = p->t_ns;
    t->cells[LONG_VALUE].values = p->values;
}

int long_table_event(struct long_table *t, struct export_sink *s, const struct export_event *event)
{
    const struct export_plan *plan = s->plan;
    const struct store_event *v = &event->event;
    bool span = v->kind == STORE_SPAN;
    size_t k = t->waiting, next = 0, placed = 0;
    t->starts[k] = v->start_ns;
    t->ends[k] = span && v->end_ns != INT64_MAX ? v->end_ns : table_no_time;
    t->ids[k] = (int64_t)v->id;
    t->parents[k] = (int64_t)v->parent;
    t->numbers[LONG_KIND][k] = number_of(t, LONG_KIND, span ? STR("span") : STR("annotation"));
    t->numbers[LONG_NAME][k] = number_of(t, LONG_NAME, v->text);
    t->numbers[LONG_NODE][k] = number_of(t, LONG_NODE, event->node);
    bool failed = t->numbers[LONG_KIND][k] < 0 || t->numbers[LONG_NAME][k] < 0 ||
                  t->numbers[LONG_NODE][k] < 0;
    for (size_t i = 0; i < plan->key_count; i++) {
        int32_t number = label_number(t, plan->keys[i], i, v->labels, v->label_count, &next);
        t->numbers[t->tags + i][k] = number;
        placed += number >= 0;
        failed |= number == -ENOMEM;
    }
    if (placed < v->label_count) {
        s->left_out++;
        s->reason = "tags that appeared while the job was being exported";
    }
    t->waiting++;
    return failed ? -ENOMEM : 0;
}

size_t long_table_events(struct long_table *t)
{
    size_t rows = t->waiting;
    for (size_t i = 0; i < t->count; i++)
        t->cells[i] = (struct table_cells){.numbers = t->numbers[i]};
    t->cells[LONG_TIME].integers = t->starts;
    t->cells[LONG_VALUE].empty = true;
    t->cells[LONG_UNIT] = (struct table_cells){.empty = true};
    t->cells[LONG_END].integers = t->ends;
    t->cells[LONG_ID].integers = t->ids;
    t->cells[LONG_PARENT].integers = t->parents;
    t->waiting = 0;
    return rows;
}
