// put.c - /api/put and Dragon's /api/metrics: requests and answers.
#include "faces/opentsdb/put.h"
#include "faces/opentsdb/handlers.h"

#include <errno.h>

static bool refuse_recording(const struct service *service, struct answer *a)
{
    if (service->agent_socket.size)
        return false;
    answer_error(a, 400, "these are recordings: points are taken by running jobs only",
                 "Send them to the address of a job that runs.");
    return true;
}

static void write_errors(struct json_writer *w, const struct put_batch *batch)
{
    json_key(w, STR("errors"));
    json_begin_array(w);
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->points[i].refused.size)
            continue;
        json_begin_object(w);
        json_key(w, STR("datapoint"));
        json_put_raw(w, batch->points[i].json);
        json_key_string(w, "error", batch->points[i].refused);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_summary(struct answer *a, const struct put_batch *batch, size_t failed,
                          bool details)
{
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key_u64(&w, "success", batch->count - failed);
    json_key_u64(&w, "failed", failed);
    if (details)
        write_errors(&w, batch);
    json_end_object(&w);
}

typedef int parse_fn(struct str body, struct arena *arena, struct put_batch *out, struct error *e);

// Returns false if the answer is complete.
static bool take(struct service *service, struct request *r, struct answer *a, parse_fn *parse,
                 struct put_batch *batch, size_t *failed)
{
    struct error e = {0};
    if (refuse_recording(service, a))
        return false;
    int rc = parse(r->body, &r->arena, batch, &e);
    if (!rc)
        rc = put_send(service->agent_socket.data, batch, &r->arena, failed, &e);
    if (rc == -EIO)
        answer_error(a, 503, e.text, NULL);
    else if (rc)
        answer_failure(a, &e);
    return rc == 0;
}

void opentsdb_put(struct service *service, struct request *r, struct answer *a)
{
    struct put_batch batch;
    size_t failed;
    if (!take(service, r, a, put_parse_opentsdb, &batch, &failed))
        return;
    bool details = request_flag(r, "details"), summary = request_flag(r, "summary");
    a->status = failed ? 400 : 204;
    if (details || summary) {
        a->status = failed ? 400 : 200;
        write_summary(a, &batch, failed, details);
    } else if (failed) {
        answer_error(a, 400, "One or more data points had errors",
                     "Append \"details\" to the put request to see them.");
    } else {
        a->content_type = NULL;
    }
}

// Writes everything before the list of errors: texts.
static void dragon_write_counts(struct json_writer *w, size_t success, size_t failed)
{
    json_begin_object(w);
    json_key_u64(w, "success", success);
    json_key_u64(w, "failed", failed);
    json_key(w, STR("errors"));
}

void dragon_metrics(struct service *service, struct request *r, struct answer *a)
{
    struct put_batch batch;
    size_t failed;
    if (!take(service, r, a, put_parse_dragon, &batch, &failed))
        return;
    a->status = 201;
    struct json_writer w = json_to(&a->body);
    dragon_write_counts(&w, batch.count - failed, failed);
    json_begin_array(&w);
    for (size_t i = 0; i < batch.count; i++)
        if (batch.points[i].refused.size)
            json_put_string(&w, batch.points[i].refused);
    json_end_array(&w);
    json_end_object(&w);
}

// Dragon's clients can end the server, and have it delete old points. Here telemetry ends with its
// job, and --window sets how long points are kept. So both requests succeed without an effect.
void dragon_nothing(struct service *service, struct request *r, struct answer *a)
{
    (void)service;
    bool cleanup = r->method == METHOD_POST;
    a->status = cleanup ? 201 : 200;
    struct json_writer w = json_to(&a->body);
    dragon_write_counts(&w, cleanup ? 0 : 1, 0);
    json_begin_array(&w);
    json_end_array(&w);
    json_end_object(&w);
}

void dragon_ready(struct service *service, struct request *r, struct answer *a)
{
    (void)service, (void)r;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key_bool(&w, "is_ready", true);
    json_end_object(&w);
}
