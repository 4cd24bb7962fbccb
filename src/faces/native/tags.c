// tags.c - /sonde/v1/tags: the tags of a metric's series, and their values.
#include "faces/native/handlers.h"

#include <errno.h>
#include <stdlib.h>

enum { TAG_EXAMPLES_DEFAULT = 10 };

static int by_key_then_value(const void *left, const void *right)
{
    const struct store_label *a = left, *b = right;
    int order = str_compare(a->key, b->key);
    return order ? order : str_compare_natural(a->value, b->value);
}

// Collects all labels of the series, sorted, without duplicates.
static int collect(const struct query_listed *all, size_t count, struct arena *arena,
                   struct store_label **out, size_t *label_count, struct error *e)
{
    size_t n = 0, unique = 0;
    for (size_t i = 0; i < count; i++)
        n += all[i].label_count;
    struct store_label *labels = arena_array(arena, n, sizeof *labels);
    if (!labels)
        return error_set(e, -ENOMEM, "no memory for the tags");
    n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < all[i].label_count; k++)
            labels[n++] = all[i].labels[k];
    if (n)
        qsort(labels, n, sizeof *labels, by_key_then_value);
    for (size_t i = 0; i < n; i++)
        if (!unique || by_key_then_value(&labels[unique - 1], &labels[i]) != 0)
            labels[unique++] = labels[i];
    *out = labels;
    *label_count = unique;
    return 0;
}

static void write_keys(struct json_writer *w, const struct store_label *labels, size_t count,
                       size_t examples)
{
    json_key(w, STR("tags"));
    json_begin_array(w);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && str_eq(labels[next].key, labels[i].key);)
            next++;
        json_begin_object(w);
        json_key_string(w, "key", labels[i].key);
        json_key_u64(w, "values", next - i);
        json_key(w, STR("examples"));
        json_begin_array(w);
        for (size_t k = i; k < next && (!examples || k - i < examples); k++)
            json_put_string(w, labels[k].value);
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
}

static int write_tags(struct request *r, struct reading *d, struct json_writer *w, struct error *e)
{
    struct query_series_filter f = {.from_ns = INT64_MIN};
    struct str requested = STR(""), found = STR("");
    struct store_label *labels;
    const struct query_listed *all;
    size_t count = 0, label_count = 0;
    int64_t examples;
    request_parameter(r, "metric", &requested);
    int rc = request_count(r, "examples", TAG_EXAMPLES_DEFAULT, &examples, e);
    if (!rc && !requested.size)
        rc = error_set(e, -EINVAL, "Missing the parameter metric");
    if (!rc && !reading_find_metric(d, requested, &found) && !found.size)
        rc = error_set(e, -ENOENT, "No such name for 'metrics': '%.*s'",
                       STR_ARG(str_slice(requested, 0, 200)));
    f.metric = found;
    if (!rc)
        rc = reading_series(d, &f, &all, &count, e);
    if (!rc)
        rc = collect(all, count, &r->arena, &labels, &label_count, e);
    if (rc)
        return rc;
    json_key_string(w, "metric", found);
    json_key_u64(w, "series", count);
    write_keys(w, labels, label_count, (size_t)examples);
    return 0;
}

void native_tags(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct reading d;
    if (service_read(service, r, INT64_MAX, &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    int rc = write_tags(r, &d, &w, &e);
    reading_write_missing(&d, &w);
    json_end_object(&w);
    if (rc)
        answer_failure(a, &e);
    service_read_end(&d, a);
}
