#include "ask/host_filter.h"

#include "ask/question.h"
#include "query/labels.h"

static const struct str HOST = {"host", 4};

static struct ask_host_selection *add_selection(struct wire_host_filter *a)
{
    a->everybody |= a->count == ASK_HOST_FILTER_SELECTIONS_MAX;
    return a->everybody ? NULL : &a->selections[a->count++];
}

bool ask_host_filter_any_host(const struct query_filter *filters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(filters[i].key, HOST))
            return true;
    return false;
}

static bool is_long_pattern(const struct query_filter *f)
{
    return (f->kind == QUERY_WILDCARD || f->kind == QUERY_IWILDCARD) &&
           f->text.size > ASK_HOST_FILTER_PATTERN_MAX;
}

void ask_host_filter_add_filters(struct wire_host_filter *a, const struct query_filter *filters,
                                 size_t count)
{
    struct ask_host_selection *selection = add_selection(a);
    if (!selection || !ask_host_filter_any_host(filters, count)) {
        a->everybody = true;
        return;
    }
    selection->matchers = arena_array(&a->arena, count, sizeof *selection->matchers);
    for (size_t i = 0; i < count && !a->everybody; i++) {
        if (!str_eq(filters[i].key, HOST))
            continue;
        if (!selection->matchers || is_long_pattern(&filters[i]) ||
            query_matcher_init(&selection->matchers[selection->matcher_count], &filters[i], NULL) !=
                0)
            a->everybody = true;
        else
            selection->matcher_count++;
    }
}

void ask_host_filter_add_tags(struct wire_host_filter *a, const struct store_label *tags,
                              size_t count)
{
    struct ask_host_selection *selection = add_selection(a);
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= str_eq(tags[i].key, HOST);
    if (selection && any) {
        selection->tags = tags;
        selection->tag_count = count;
    } else {
        a->everybody = true;
    }
}

void ask_host_filter_read(struct wire_host_filter *a, unsigned question, struct str request)
{
    const struct ask_question_row *row = ask_question_row(question);
    *a = (struct wire_host_filter){.arena = arena_limited(ASK_HOST_FILTER_MEMORY)};
    if (!row || !row->host_filter || row->host_filter(a, request) != 0)
        a->everybody = true;
}

void ask_host_filter_free(struct wire_host_filter *a)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < a->selections[i].matcher_count; k++)
            query_matcher_fini(&a->selections[i].matchers[k]);
    arena_free(&a->arena);
}

// ---- one value ----

static bool lets_through(const struct ask_host_selection *selection, struct str value)
{
    for (size_t i = 0; i < selection->matcher_count; i++)
        if (!query_matcher_test(&selection->matchers[i], value))
            return false;
    const struct store_label label = {HOST, value};
    const struct store_series_info series = {.labels = &label, .label_count = 1};
    for (size_t i = 0; i < selection->tag_count; i++)
        if (str_eq(selection->tags[i].key, HOST) &&
            !query_labels_carry(&series, &selection->tags[i], 1))
            return false;
    return true;
}

static bool lets_through_without(const struct ask_host_selection *selection)
{
    for (size_t i = 0; i < selection->matcher_count; i++)
        if (!query_filter_passes_without_key(selection->matchers[i].filter->kind))
            return false;
    return selection->tag_count == 0;
}

bool ask_host_filter_concerns(const struct wire_host_filter *a, struct str node,
                              const struct wire_host_set *held)
{
    if (a->everybody || !held->known || held->any)
        return true;
    for (size_t w = 0; w < a->count; w++) {
        const struct ask_host_selection *selection = &a->selections[w];
        if (lets_through(selection, node) || (held->without && lets_through_without(selection)))
            return true;
        for (size_t i = 0; i < held->count; i++)
            if (lets_through(selection, held->values[i]))
                return true;
    }
    return false;
}
