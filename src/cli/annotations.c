#include "cli/annotations.h"

#include "cli/data_request.h"

#include <errno.h>
#include <stdlib.h>

static int by_time(const void *a, const void *b)
{
    int64_t s = data_request_number(*(json_t *const *)a, "t_ns"),
            t = data_request_number(*(json_t *const *)b, "t_ns");
    return (s > t) - (s < t);
}

static void call_with(const json_t *row, annotations_fn *each, void *user)
{
    struct arena arena = {0};
    struct store_event event = {.kind = STORE_ANNOTATION,
                                .start_ns = data_request_number(row, "t_ns"),
                                .text = str_of(data_request_text(row, "text"))};
    size_t labels = 0;
    event.end_ns = event.start_ns;
    event.labels = data_request_labels(json_object_get(row, "tags"), &arena, &labels);
    event.label_count = labels;
    each(&event, user);
    arena_free(&arena);
}

int annotations_each(struct sonde_client *client, const char *tag, annotations_fn *each, void *user,
                     char **missing, struct error *e)
{
    struct buf path = {0};
    json_t *list = NULL;
    buf_add_str(&path, STR("/sonde/v1/annotations?limit=0"));
    client_add_parameter(&path, "tag", tag);
    int rc = client_list(client, buf_cstr(&path), "annotations", &list, missing, e);
    buf_free(&path);
    if (rc)
        return rc;
    size_t count = json_array_size(list);
    json_t **rows = calloc(count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < count; i++)
        rows[i] = json_array_get(list, i);
    if (rows)
        qsort(rows, count, sizeof *rows, by_time);
    for (size_t i = 0; rows && i < count; i++)
        call_with(rows[i], each, user);
    rc = rows ? 0 : error_set(e, -ENOMEM, "out of memory");
    free(rows);
    json_decref(list);
    return rc;
}
