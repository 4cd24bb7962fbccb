// lists.c - converts the lists of the native face to arrays of structs. A table maps members of the
// JSON to fields.
//
// A list is one block of memory: the structs, their tags, their texts.
#include "client/client.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

enum field_kind {
    FIELD_TEXT,
    FIELD_I64,
    FIELD_U64,
    FIELD_SIZE,
    FIELD_INT,
    FIELD_DOUBLE,
    FIELD_TAGS
};

struct field {
    const char *key;
    size_t offset; // FIELD_TAGS: offset of the pointer; the count follows it directly
    enum field_kind kind;
};

struct list {
    const char *name; // name of the array in the answer
    size_t size;      // size of a struct
    struct field fields[9];
};

#define FIELD(type, json, member, kind)           \
    {                                             \
        json, offsetof(struct type, member), kind \
    }
// clang-format off
static const struct list nodes = {"nodes", sizeof(struct sonde_node), {
    FIELD(sonde_node, "host", host, FIELD_TEXT), FIELD(sonde_node, "job", job, FIELD_TEXT), FIELD(sonde_node, "state", state, FIELD_TEXT),
    FIELD(sonde_node, "series", series, FIELD_SIZE), FIELD(sonde_node, "first_ns", first_ns, FIELD_I64), FIELD(sonde_node, "last_ns", last_ns, FIELD_I64)}};
static const struct list metrics = {"metrics", sizeof(struct sonde_metric_info), {
    FIELD(sonde_metric_info, "name", name, FIELD_TEXT), FIELD(sonde_metric_info, "kind", kind, FIELD_TEXT), FIELD(sonde_metric_info, "unit", unit, FIELD_TEXT),
    FIELD(sonde_metric_info, "help", help, FIELD_TEXT), FIELD(sonde_metric_info, "level", level, FIELD_INT)}};
static const struct list series = {"series", sizeof(struct sonde_series_info), {
    FIELD(sonde_series_info, "metric", metric, FIELD_TEXT), FIELD(sonde_series_info, "tags", tags, FIELD_TAGS),
    FIELD(sonde_series_info, "t_ns", time_ns, FIELD_I64), FIELD(sonde_series_info, "value", value, FIELD_DOUBLE)}};
static const struct list spans = {"spans", sizeof(struct sonde_event), {
    FIELD(sonde_event, "name", text, FIELD_TEXT), FIELD(sonde_event, "start_ns", start_ns, FIELD_I64), FIELD(sonde_event, "end_ns", end_ns, FIELD_I64),
    FIELD(sonde_event, "id", id, FIELD_U64), FIELD(sonde_event, "parent", parent, FIELD_U64), FIELD(sonde_event, "node", node, FIELD_TEXT),
    FIELD(sonde_event, "tags", tags, FIELD_TAGS)}};
static const struct list annotations = {"annotations", sizeof(struct sonde_event), {
    FIELD(sonde_event, "text", text, FIELD_TEXT), FIELD(sonde_event, "t_ns", start_ns, FIELD_I64), FIELD(sonde_event, "t_ns", end_ns, FIELD_I64),
    FIELD(sonde_event, "node", node, FIELD_TEXT), FIELD(sonde_event, "tags", tags, FIELD_TAGS)}};
// clang-format on

// The block to fill; NULL while its size is measured.
struct block {
    char *tags, *texts;
    size_t tag_bytes, text_bytes;
};

static const char *add_text(struct block *b, const char *text, size_t size)
{
    char *at = b->texts ? b->texts + b->text_bytes : NULL;
    if (at) {
        memcpy(at, text, size);
        at[size] = 0;
    }
    b->text_bytes += size + 1;
    return at;
}

static void add_tags(struct block *b, json_t *object, void *out)
{
    struct {
        const struct sonde_tag *tags;
        size_t count;
    } found = {NULL, json_object_size(object)};
    struct sonde_tag *tags = b->tags ? (struct sonde_tag *)(void *)(b->tags + b->tag_bytes) : NULL;
    const char *key;
    json_t *value;
    size_t i = 0;
    b->tag_bytes += found.count * sizeof *tags;
    json_object_foreach(object, key, value)
    {
        const char *k = add_text(b, key, strlen(key));
        const char *v = add_text(b, json_is_string(value) ? json_string_value(value) : "",
                                 json_string_length(value));
        if (tags)
            tags[i++] = (struct sonde_tag){k, v};
    }
    found.tags = tags;
    if (out)
        memcpy(out, &found, sizeof found);
}

static void add_field(struct block *b, const struct field *f, json_t *value, char *row)
{
    char *out = row ? row + f->offset : NULL;
    if (f->kind == FIELD_TEXT) {
        const char *text = add_text(b, json_is_string(value) ? json_string_value(value) : "",
                                    json_string_length(value));
        if (out)
            memcpy(out, &text, sizeof text);
        return;
    }
    if (f->kind == FIELD_TAGS) {
        add_tags(b, value, out);
        return;
    }
    if (!out)
        return;
    int64_t whole = json_integer_value(value);
    size_t size = (size_t)whole;
    int small = (int)whole;
    double real = json_is_number(value) ? json_number_value(value) : __builtin_nan("");
    const struct {
        const void *value;
        size_t size;
    } values[] = {[FIELD_I64] = {&whole, sizeof whole},
                  [FIELD_U64] = {&whole, sizeof whole},
                  [FIELD_SIZE] = {&size, sizeof size},
                  [FIELD_INT] = {&small, sizeof small},
                  [FIELD_DOUBLE] = {&real, sizeof real}};
    memcpy(out, values[f->kind].value, values[f->kind].size);
}

static void add_rows(struct block *b, const struct list *l, json_t *rows, char *out)
{
    for (size_t i = 0; i < json_array_size(rows); i++)
        for (const struct field *f = l->fields; f->key; f++)
            add_field(b, f, json_object_get(json_array_get(rows, i), f->key),
                      out ? out + i * l->size : NULL);
}

static int take_list(const struct list *l, json_t *rows, void **out, size_t *count, struct error *e)
{
    struct block b = {0};
    if (!json_is_array(rows))
        return error_set(e, -EBADMSG, "the answer is not a list of %s", l->name);
    size_t n = json_array_size(rows);
    add_rows(&b, l, rows, NULL);
    char *block = calloc(1, n * l->size + b.tag_bytes + b.text_bytes + 1);
    if (!block)
        return error_set(e, -ENOMEM, "out of memory");
    struct block fill = {.tags = block + n * l->size, .texts = block + n * l->size + b.tag_bytes};
    add_rows(&fill, l, rows, block);
    *out = block;
    *count = n;
    return 0;
}

static int ask(struct sonde_client *c, const struct list *l, struct buf *path, void **out,
               size_t *count, struct sonde_error *error)
{
    json_t *rows = NULL;
    struct error *e = error_inside(error);
    *out = NULL;
    *count = 0;
    int rc = path->failed ? error_set(e, -ENOMEM, "out of memory")
                          : client_list(c, buf_cstr(path), l->name, &rows, NULL, e);
    buf_free(path);
    if (!rc)
        rc = take_list(l, rows, out, count, e);
    json_decref(rows);
    return rc;
}

int sonde_client_nodes(struct sonde_client *c, struct sonde_node **out, size_t *count,
                       struct sonde_error *error)
{
    struct buf path = {0};
    buf_add_str(&path, STR("/sonde/v1/nodes"));
    return ask(c, &nodes, &path, (void **)out, count, error);
}

int sonde_client_metrics(struct sonde_client *c, const char *part, struct sonde_metric_info **out,
                         size_t *count, struct sonde_error *error)
{
    struct buf path = {0};
    buf_add_str(&path, STR("/sonde/v1/metrics"));
    client_add_parameter(&path, "q", part);
    return ask(c, &metrics, &path, (void **)out, count, error);
}

int sonde_client_list(struct sonde_client *c, const char *match, struct sonde_series_info **out,
                      size_t *count, struct sonde_error *error)
{
    struct buf path = {0};
    buf_add_str(&path, STR("/sonde/v1/series?latest&limit=0"));
    client_add_parameter(&path, "match", match);
    return ask(c, &series, &path, (void **)out, count, error);
}

static int events(struct sonde_client *c, const struct list *l, const char *name, const char *start,
                  const char *end, struct sonde_event **out, size_t *count,
                  struct sonde_error *error)
{
    struct buf path = {0};
    buf_printf(&path, "/sonde/v1/%s?limit=0", l->name);
    client_add_parameter(&path, "name", name);
    client_add_parameter(&path, "start", start);
    client_add_parameter(&path, "end", end);
    return ask(c, l, &path, (void **)out, count, error);
}

int sonde_client_spans(struct sonde_client *c, const char *name, const char *start, const char *end,
                       struct sonde_event **out, size_t *count, struct sonde_error *error)
{
    return events(c, &spans, name, start, end, out, count, error);
}

int sonde_client_annotations(struct sonde_client *c, const char *start, const char *end,
                             struct sonde_event **out, size_t *count, struct sonde_error *error)
{
    return events(c, &annotations, NULL, start, end, out, count, error);
}

void sonde_list_free(void *list)
{
    free(list);
}
