#include "ask/host_filter.h"

#include "ask/question.h"
#include "query/labels.h"

static const struct str HOST = {"host", 4};

static struct ask_want *add_want(struct wire_host_filter *a)
{
    a->everybody |= a->count == ASK_HOST_FILTER_WANTS_MAX;
    return a->everybody ? NULL : &a->wants[a->count++];
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
    struct ask_want *want = add_want(a);
    if (!want || !ask_host_filter_any_host(filters, count)) {
        a->everybody = true;
        return;
    }
    want->matchers = arena_array(&a->arena, count, sizeof *want->matchers);
    for (size_t i = 0; i < count && !a->everybody; i++) {
        if (!str_eq(filters[i].key, HOST))
            continue;
        if (!want->matchers || is_long_pattern(&filters[i]) ||
            query_matcher_init(&want->matchers[want->matcher_count], &filters[i], NULL) != 0)
            a->everybody = true;
        else
            want->matcher_count++;
    }
}

void ask_host_filter_add_tags(struct wire_host_filter *a, const struct store_label *tags,
                              size_t count)
{
    struct ask_want *want = add_want(a);
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= str_eq(tags[i].key, HOST);
    if (want && any) {
        want->tags = tags;
        want->tag_count = count;
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
        for (size_t k = 0; k < a->wants[i].matcher_count; k++)
            query_matcher_fini(&a->wants[i].matchers[k]);
    arena_free(&a->arena);
}

// ---- one value ----

static bool lets_through(const struct ask_want *want, struct str value)
{
    for (size_t i = 0; i < want->matcher_count; i++)
        if (!query_matcher_test(&want->matchers[i], value))
            return false;
    const struct store_label label = {HOST, value};
    const struct store_series_info series = {.labels = &label, .label_count = 1};
    for (size_t i = 0; i < want->tag_count; i++)
        if (str_eq(want->tags[i].key, HOST) && !query_labels_carry(&series, &want->tags[i], 1))
            return false;
    return true;
}

static bool lets_through_without(const struct ask_want *want)
{
    for (size_t i = 0; i < want->matcher_count; i++)
        if (!query_filter_passes_without_key(want->matchers[i].filter->kind))
            return false;
    return want->tag_count == 0;
}

bool ask_host_filter_concerns(const struct wire_host_filter *a, struct str node,
                              const struct wire_host_set *held)
{
    if (a->everybody || !held->known || held->any)
        return true;
    for (size_t w = 0; w < a->count; w++) {
        const struct ask_want *want = &a->wants[w];
        if (lets_through(want, node) || (held->without && lets_through_without(want)))
            return true;
        for (size_t i = 0; i < held->count; i++)
            if (lets_through(want, held->values[i]))
                return true;
    }
    return false;
}
