#include "client/span_list.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void add_time(struct buf *path, const char *key, int64_t t_ns)
{
    char text[48];
    snprintf(text, sizeof text, "%lld.%09lld", (long long)(t_ns / NS_PER_S),
             (long long)(t_ns % NS_PER_S));
    client_add_parameter(path, key, text);
}

static bool read_span(const json_t *row, struct arena *arena, struct listed_span *out)
{
    json_t *tags = json_object_get(row, "tags"), *value;
    const char *key;
    *out = (struct listed_span){.start_ns = client_time_of(row, "start_ns", 0),
                                .end_ns = client_time_of(row, "end_ns", INT64_MAX)};
    out->tags = arena_array(arena, json_object_size(tags), sizeof *out->tags);
    if (!out->tags)
        return false;
    json_object_foreach(tags, key, value)
    {
        if (strcmp(key, "host") == 0)
            continue;
        struct sonde_tag tag = {arena_strdup(arena, str_of(key)),
                                arena_strdup(arena, str_of(json_string_value(value)))};
        if (!tag.key || !tag.value)
            return false;
        out->tags[out->tag_count++] = tag;
    }
    return true;
}

int span_list_read(struct sonde_client *c, const char *name, int64_t start_ns, int64_t end_ns,
                   struct arena *arena, struct span_list *out, char **missing, struct error *e)
{
    struct buf path = {0};
    json_t *rows = NULL;
    *out = (struct span_list){0};
    *missing = NULL;
    buf_printf(&path, "/sonde/v1/spans?limit=0");
    client_add_parameter(&path, "name", name);
    if (start_ns)
        add_time(&path, "start", start_ns);
    add_time(&path, "end", end_ns);
    int rc = path.failed ? error_set(e, -ENOMEM, "out of memory")
                         : client_list(c, buf_cstr(&path), "spans", &rows, missing, e);
    buf_free(&path);
    if (!rc && !(out->spans = arena_array(arena, json_array_size(rows), sizeof *out->spans)))
        rc = error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(rows) && !rc; i++) {
        struct listed_span *span = &out->spans[out->count];
        if (!read_span(json_array_get(rows, i), arena, span))
            rc = error_set(e, -ENOMEM, "out of memory");
        else if ((!start_ns || span->start_ns >= start_ns) && span->start_ns <= end_ns)
            out->count++;
    }
    json_decref(rows);
    return rc;
}

// ---------------------------------------------------------------- tags

static const char *tag_value(const struct sonde_tag *tags, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(tags[i].key, key) == 0)
            return tags[i].value;
    return NULL;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct sonde_tag *)a)->key, ((const struct sonde_tag *)b)->key);
}

struct sonde_tag *span_join_tags(struct arena *arena, const struct sonde_series *s,
                                 const struct listed_span *span, size_t *count)
{
    size_t n = 0;
    struct sonde_tag *tags =
        arena_array(arena, s->tag_count + (span ? span->tag_count : 0), sizeof *tags);
    for (size_t i = 0; tags && i < s->tag_count; i++)
        tags[n++] = s->tags[i];
    for (size_t i = 0; tags && span && i < span->tag_count; i++)
        if (!tag_value(s->tags, s->tag_count, span->tags[i].key))
            tags[n++] = span->tags[i];
    for (size_t i = 0; tags && i < n; i++) {
        tags[i].key = arena_strdup(arena, str_of(tags[i].key));
        tags[i].value = arena_strdup(arena, str_of(tags[i].value));
        if (!tags[i].key || !tags[i].value)
            return NULL;
    }
    if (tags && n)
        qsort(tags, n, sizeof *tags, by_key);
    *count = n;
    return tags;
}
