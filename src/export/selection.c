#include "export/selection.h"

#include <errno.h>

int export_judge_make(struct export_judge *j, const struct export_selection *selection,
                      struct error *e)
{
    *j = (struct export_judge){.selection = selection};
    if (!selection->filters)
        return 0;
    struct query q = {0};
    const char *m = arena_printf(&j->arena, "none:x{%s}", selection->filters);
    int rc =
        m ? query_parse_m(str_of(m), &j->arena, &q, e) : error_set(e, -ENOMEM, "out of memory");
    if (rc)
        return error_prefix(e, "--filter");
    j->filters = q.filters;
    j->filter_count = q.filter_count;
    j->matchers = arena_array(&j->arena, q.filter_count, sizeof *j->matchers);
    if (!j->matchers)
        return error_set(e, -ENOMEM, "out of memory");
    for (; j->matcher_count < q.filter_count; j->matcher_count++) {
        rc = query_matcher_init(&j->matchers[j->matcher_count], &q.filters[j->matcher_count], e);
        if (rc)
            return error_prefix(e, "--filter");
    }
    return 0;
}

void export_judge_free(struct export_judge *j)
{
    for (size_t i = 0; i < j->matcher_count; i++)
        query_matcher_fini(&j->matchers[i]);
    arena_free(&j->arena);
    *j = (struct export_judge){0};
}

// True if the text matches the pattern, in which '*' matches any characters.
static bool fits(struct str pattern, struct str text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, back = 0;
    while (t < text.size) {
        if (p < pattern.size && pattern.data[p] == '*') {
            star = p++;
            back = t;
        } else if (p < pattern.size && pattern.data[p] == text.data[t]) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++back;
        } else {
            return false;
        }
    }
    while (p < pattern.size && pattern.data[p] == '*')
        p++;
    return p == pattern.size;
}

bool export_judge_metric(const struct export_judge *j, struct str name)
{
    struct str rest = str_of(j->selection->metrics);
    bool found = !rest.data;
    while (rest.data && !found)
        found = fits(str_trim(str_cut(&rest, ',')), name);
    return found;
}

struct str export_judge_unknown(const struct export_judge *j, const struct str *metrics,
                                size_t count)
{
    struct str rest = str_of(j->selection->metrics);
    while (rest.data) {
        struct str name = str_trim(str_cut(&rest, ','));
        bool known = !name.size;
        for (size_t i = 0; i < count && !known; i++)
            known = fits(name, metrics[i]);
        if (!known)
            return name;
    }
    return (struct str){0};
}

static const struct str *value_of(const struct store_label *labels, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(labels[i].key, key))
            return &labels[i].value;
    return NULL;
}

static bool passes(const struct export_judge *j, const struct store_label *labels, size_t count,
                   const struct str *node)
{
    for (size_t i = 0; i < j->matcher_count; i++) {
        const struct query_filter *f = &j->filters[i];
        const struct str *value = value_of(labels, count, f->key);
        if (!value && node && str_eq(f->key, STR("host")))
            value = node;
        if (value ? !query_matcher_test(&j->matchers[i], *value)
                  : !query_filter_passes_without_key(f->kind))
            return false;
    }
    return true;
}

bool export_judge_labels(const struct export_judge *j, const struct store_label *labels,
                         size_t count)
{
    return passes(j, labels, count, NULL);
}

bool export_judge_event(const struct export_judge *j, const struct export_event *event)
{
    return passes(j, event->event.labels, event->event.label_count, &event->node);
}
