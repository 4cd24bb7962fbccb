// admin.c - answers other requests of scripts for OpenTSDB and of clients of Dragon's service:
// stats, ids, tokens.
#include "base/clock.h"
#include "base/hash.h"
#include "faces/opentsdb/handlers.h"
#include "http/json_body.h"
#include "http/workers.h"
#include "wire/drain.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

// ---- stats

static void write_stat(struct json_writer *w, const char *name, uint64_t value, struct str host)
{
    json_begin_object(w);
    json_key_string(w, "metric", str_of(name));
    json_key_i64(w, "timestamp", clock_realtime_ns() / NS_PER_S);
    char text[24];
    int size = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    json_key_string(w, "value", (struct str){text, (size_t)size});
    json_key(w, STR("tags"));
    json_begin_object(w);
    json_key_string(w, "host", host);
    json_end_object(w);
    json_end_object(w);
}

void opentsdb_stats(struct service *service, struct request *r, struct answer *a)
{
    char host[256] = "";
    struct connection_counts c;
    struct workers_counts workers;
    struct error e = {0};
    struct sources_view view;
    if (sources_open(service->reads.sources, &r->arena, &view, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    gethostname(host, sizeof host - 1);
    connections_counts(service->connections, &c);
    workers_counts(service->workers, &workers);
    struct drainer_stats drains = {0};
    if (service->reads.drainer)
        drainer_get_stats(service->reads.drainer, &drains);
    uint64_t series = 0;
    for (size_t i = 0; i < view.count; i++)
        series += store_series_count(view.snapshots[i]);
    const struct {
        const char *name;
        uint64_t value;
    } stats[] = {
        {"tsd.connectionmgr.connections", c.open},
        {"tsd.connectionmgr.connections.total", c.accepted},
        {"tsd.connectionmgr.connections.rejected", c.refused},
        {"sonde.connections.timed_out", c.timed_out},
        {"sonde.connections.evicted", c.evicted},
        {"sonde.requests.answered", workers.answered},
        {"sonde.requests.running", workers.running},
        {"sonde.requests.slow", workers.slow},
        {"sonde.requests.queued", workers.queued},
        {"sonde.requests.hung_up", workers.hung_up},
        {"sonde.requests.refused_slow", workers.refused_slow},
        {"sonde.requests.refused_memory", workers.refused_memory},
        {"sonde.requests.drained", drains.questions},
        {"sonde.requests.drained_late", drains.late},
        {"sonde.drains", drains.requests},
        {"sonde.workers", workers.threads},
        {"sonde.workers.held_bytes", workers.held_bytes},
        {"sonde.decoded_bytes", query_cache_bytes(view.cache)},
        {"sonde.files", view.count},
        {"sonde.files.unreadable", view.unreadable_count},
        {"sonde.series", series},
        {"sonde.streams", atomic_load(&service->streams)},
        {"tsd.uptime", (uint64_t)((clock_monotonic_ns() - service->started_ns) / NS_PER_S)},
    };
    sources_close(&view);
    struct json_writer w = json_to(&a->body);
    json_begin_array(&w);
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        write_stat(&w, stats[i].name, stats[i].value, str_of(host));
    json_end_array(&w);
}

// Does nothing, because no cache can be out of date: an answer contains all points that were
// appended before the request.
void opentsdb_drop_caches(struct service *service, struct request *r, struct answer *a)
{
    (void)service, (void)r;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key_string(&w, "status", STR("200"));
    json_key_string(&w, "message", STR("Caches dropped"));
    json_end_object(&w);
}

// ---- ids of names

static const char *bad_name(struct str name)
{
    for (size_t i = 0; i < name.size; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (c < 0x80 && !isalnum(c) && !strchr("-_./:", c))
            return "Illegal character in the name";
    }
    return !name.size ? "Name was empty" : name.size > STORE_NAME_MAX ? "Name is too long" : NULL;
}

// A name exists from its first point on, so no id is assigned: it is a hash of the name.
static size_t write_ids(struct json_writer *w, const char *kind, struct str names, bool bad,
                        uint64_t seed)
{
    size_t written = 0;
    while (names.data) {
        struct str name = str_trim(str_cut(&names, ','));
        const char *why = bad_name(name);
        char id[20];
        if ((why != NULL) != bad)
            continue;
        if (!written++) {
            char key[32];
            snprintf(key, sizeof key, "%s%s", kind, bad ? "_errors" : "");
            json_key(w, str_of(key));
            json_begin_object(w);
        }
        snprintf(id, sizeof id, "%016llX",
                 (unsigned long long)hash_bytes(name.data, name.size, seed));
        json_key(w, name);
        json_put_string(w, str_of(bad ? why : id));
    }
    if (written)
        json_end_object(w);
    return written;
}

void opentsdb_assign(struct service *service, struct request *r, struct answer *a)
{
    static const char *const kinds[] = {"metric", "tagk", "tagv"};
    struct error e = {0};
    struct str names;
    size_t good = 0, bad = 0;
    (void)service;
    if (json_body_take(r, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!request_parameter(r, kinds[i], &names) || !names.size)
            continue;
        good += write_ids(&w, kinds[i], names, false, i);
        bad += write_ids(&w, kinds[i], names, true, i);
    }
    json_end_object(&w);
    a->status = bad ? 400 : 200;
    if (!good && !bad)
        answer_error(a, 400, "Missing values to assign UIDs",
                     "Give metric=, tagk= or tagv=, with names separated by commas.");
}

// ---- Dragon

// Dragon's clients exchange a key for a token. Here the answer is the key itself, a token of any
// role.
void dragon_token(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct str key = STR("");
    bool parsed = json_body_take(r, &e) == 0;
    if (parsed)
        request_parameter(r, "auth_key", &key);
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    if (auth_role_of(&service->site->auth, key)) {
        char *token = arena_printf(&r->arena, "Bearer %.*s", STR_ARG(key));
        json_key_string(&w, "access_token", str_of(token ? token : ""));
    } else {
        a->status = 400;
        json_key_string(&w, "msg", STR("Bad auth_key"));
    }
    json_end_object(&w);
}

void dragon_shutdown(struct service *service, struct request *r, struct answer *a)
{
    (void)service, (void)r;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key_bool(&w, "shutdown_begin", true);
    json_key_string(&w, "msg", STR("nothing to do: telemetry ends by itself when its job does"));
    json_end_object(&w);
}
