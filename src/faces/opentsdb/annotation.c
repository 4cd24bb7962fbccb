// annotation.c - /api/annotation, /api/annotation/bulk, /api/annotations: finds annotations by
// time, and sends new ones to the job's agent.
//
// A recording only grows, so annotations are never changed or deleted. If several have the same
// second, answers contain the last one.
#include "ask/series_list.h"
#include "ask/tsuid.h"
#include "base/clock.h"
#include "base/escape.h"
#include "faces/opentsdb/handlers.h"
#include "faces/opentsdb/put.h"
#include "faces/opentsdb/write.h"

#include <errno.h>

enum { LIST_BYTES_MAX = 16 << 20 };

// ---- search by time

struct annotations {
    int64_t from_ns, to_ns, shift_ns;
    struct buf text; // of the last match, or of all of them
    bool all;
    size_t count;
};

static bool write_match(const struct store_event *event, struct str host,
                        const struct store_label *file_label, void *user)
{
    struct annotations *annotations = user;
    (void)host, (void)file_label;
    if (event->kind != STORE_ANNOTATION || event->start_ns < annotations->from_ns ||
        event->start_ns > annotations->to_ns)
        return true;
    if (annotations->all && annotations->count++)
        buf_add_char(&annotations->text, ',');
    else
        annotations->text.size = 0;
    struct json_writer w = json_to(&annotations->text);
    opentsdb_write_annotation(&w, event, STR(""), true, annotations->shift_ns);
    return true;
}

static void answer_one(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct str start;
    struct annotations annotations = {.shift_ns = service->shift_ns};
    struct reading d;
    if (!request_parameter(r, "start_time", &start) || !start.size) {
        answer_error(a, 400, "Missing start_time", NULL);
        return;
    }
    if (query_parse_time(start, clock_realtime_ns(), STR(""), &annotations.from_ns, &e) != 0 ||
        service_read(service, r, annotations.from_ns, &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    annotations.from_ns = service_recorded_ns(service, annotations.from_ns);
    // Times match with the resolution in which they are shown, seconds or milliseconds.
    int64_t shown_ns = annotations.from_ns % NS_PER_S ? NS_PER_MS : NS_PER_S;
    if (__builtin_add_overflow(annotations.from_ns, shown_ns - 1, &annotations.to_ns))
        annotations.to_ns = INT64_MAX;
    struct store_event_selection events = {.from_ns = annotations.from_ns,
                                           .to_ns = annotations.to_ns,
                                           .kinds = 1u << STORE_ANNOTATION};
    int rc = reading_events(&d, &events, write_match, &annotations, &e);
    service_read_end(&d, a);
    if (rc)
        answer_failure(a, &e);
    else if (annotations.text.size)
        buf_add_str(&a->body, buf_str(&annotations.text));
    else
        answer_error(a, 404, "Unable to locate annotation in storage", NULL);
    buf_free(&annotations.text);
}

static int read_range(const struct service *service, const struct request *r,
                      struct annotations *out, struct error *e)
{
    struct str start, end;
    int64_t now_ns = clock_realtime_ns();
    out->to_ns = now_ns;
    if (!request_parameter(r, "start_time", &start) || !start.size)
        return error_set(e, -EINVAL, "Missing start time");
    int rc = query_parse_time(start, now_ns, STR(""), &out->from_ns, e);
    if (!rc && request_parameter(r, "end_time", &end) && end.size)
        rc = query_parse_time(end, now_ns, STR(""), &out->to_ns, e);
    if (!rc && out->to_ns < out->from_ns)
        rc = error_set(e, -EINVAL, "end time is before start time");
    if (rc)
        return rc;
    out->from_ns = service_recorded_ns(service, out->from_ns);
    out->to_ns = service_recorded_ns(service, out->to_ns);
    return 0;
}

static void answer_range(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct annotations annotations = {
        .shift_ns = service->shift_ns, .all = true, .text.limit = LIST_BYTES_MAX};
    struct reading d;
    if (read_range(service, r, &annotations, &e) != 0 ||
        service_read(service, r, annotations.to_ns, &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    struct store_event_selection events = {.from_ns = annotations.from_ns,
                                           .to_ns = annotations.to_ns,
                                           .kinds = 1u << STORE_ANNOTATION};
    int rc = reading_events(&d, &events, write_match, &annotations, &e);
    service_read_end(&d, a);
    if (!rc && annotations.text.failed)
        rc = error_set(&e, -E2BIG,
                       "the annotations of this range take more than %d bytes: narrow it",
                       LIST_BYTES_MAX);
    if (rc)
        answer_failure(a, &e);
    else
        buf_printf(&a->body, "[%.*s]", STR_ARG(buf_str(&annotations.text)));
    buf_free(&annotations.text);
}

// ---- new annotations

struct known_series {
    struct service *service;
    struct request *r;
};

// A tsuid is a hash, so finding its series means searching all of them.
static bool add_tags_of(void *user, struct str requested, struct buf *line)
{
    const struct known_series *k = user;
    struct query_series_filter f = {0};
    const struct query_listed *all;
    struct reading d;
    size_t count = 0;
    bool found = false;
    if (service_read(k->service, k->r, INT64_MAX, &d, NULL) != 0)
        return false;
    if (reading_series(&d, &f, &all, &count, NULL) != 0)
        count = 0;
    for (size_t i = 0; i < count && !found; i++) {
        char tsuid[TSUID_SIZE];
        tsuid_of(tsuid, all[i].metric->name, all[i].labels, all[i].label_count);
        found = str_eq_nocase(requested, (struct str){tsuid, sizeof tsuid});
        for (size_t l = 0; l < all[i].label_count && found; l++) {
            buf_printf(line, " %.*s=", STR_ARG(all[i].labels[l].key));
            escape_word(line, all[i].labels[l].value);
        }
    }
    service_read_end(&d, NULL);
    return found;
}

static void write_batch(struct answer *a, const struct put_batch *batch, bool list)
{
    struct json_writer w = json_to(&a->body);
    if (list)
        json_begin_array(&w);
    for (size_t i = 0; i < batch->count; i++)
        json_put_raw(&w, batch->points[i].json);
    if (list)
        json_end_array(&w);
}

static void refuse(struct answer *a, const struct put_batch *batch, size_t failed)
{
    struct error e;
    size_t first = 0;
    while (first + 1 < batch->count && !batch->points[first].refused.size)
        first++;
    struct str words = batch->points[first].refused;
    if (batch->count == 1)
        error_set(&e, -EINVAL, "%.*s", STR_ARG(words));
    else
        error_set(&e, -EINVAL, "%zu of %zu annotations were refused, the first with: %.*s", failed,
                  batch->count, STR_ARG(words));
    answer_failure(a, &e);
}

// Reads an annotation without a body from the parameters of the address. Returns false without
// memory.
static bool read_address(struct request *r)
{
    static const struct {
        const char *name;
        struct str member;
    } members[] = {{"start_time", STR("startTime")},
                   {"end_time", STR("endTime")},
                   {"description", STR("description")},
                   {"notes", STR("notes")},
                   {"tsuid", STR("tsuid")}};
    struct buf text = {0};
    struct json_writer w = json_to(&text);
    bool any = false;
    json_begin_object(&w);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct str value;
        int64_t number;
        if (!request_parameter(r, members[i].name, &value) || !value.size)
            continue;
        any = true;
        json_key(&w, members[i].member);
        if (str_ends(members[i].member, STR("Time")) && str_to_i64(value, &number))
            json_put_i64(&w, number);
        else
            json_put_string(&w, value);
    }
    json_end_object(&w);
    if (any)
        r->body = text.failed ? (struct str){0} : arena_str(&r->arena, buf_str(&text));
    buf_free(&text);
    return !any || r->body.data;
}

static void take(struct service *service, struct request *r, struct answer *a, bool list)
{
    struct known_series known = {service, r};
    struct put_batch batch;
    struct error e = {0};
    size_t failed = 0;
    if (!service->agent_socket.size) {
        answer_error(a, 400, "these are recordings: annotations are taken by running jobs only",
                     "Send them to the address of a job that runs.");
        return;
    }
    int rc = r->body.size || list || read_address(r)
                 ? 0
                 : error_set(&e, -ENOMEM, "no memory for the annotation");
    if (!rc)
        rc = put_parse_annotations(r->body, add_tags_of, &known, &r->arena, &batch, &e);
    if (!rc)
        rc = put_send(service->agent_socket.data, &batch, &r->arena, &failed, &e);
    if (rc == -EIO)
        answer_error(a, 503, e.text, NULL);
    else if (rc)
        answer_failure(a, &e);
    else if (failed)
        refuse(a, &batch, failed);
    else
        write_batch(a, &batch, list);
}

static bool refuse_deleting(const struct request *r, struct answer *a)
{
    if (r->method != METHOD_DELETE)
        return false;
    answer_error(a, 501, "annotations cannot be deleted", "A recording only grows.");
    return true;
}

void opentsdb_annotation(struct service *service, struct request *r, struct answer *a)
{
    if (refuse_deleting(r, a))
        return;
    if (r->method == METHOD_POST || r->method == METHOD_PUT)
        take(service, r, a, false);
    else
        answer_one(service, r, a);
}

void opentsdb_annotations(struct service *service, struct request *r, struct answer *a)
{
    if (refuse_deleting(r, a))
        return;
    if (r->method == METHOD_POST || r->method == METHOD_PUT)
        take(service, r, a, false);
    else
        answer_range(service, r, a);
}

void opentsdb_annotation_bulk(struct service *service, struct request *r, struct answer *a)
{
    if (!refuse_deleting(r, a))
        take(service, r, a, true);
}
