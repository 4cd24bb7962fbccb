#include "aggregator/routes.h"

#include "faces/native/handlers.h"
#include "faces/opentsdb/handlers.h"
#include "faces/web/page.h"

enum { READ = METHOD_GET, ASK = METHOD_GET | METHOD_POST };

static const struct route routes[] = {
    {STR("/"), READ, ACCESS_VIEW, page_show, "the page for browsers", NULL},
    {STR("/page.js"), READ, ACCESS_VIEW, page_show, "the page's script", "v"},
    {STR("/page.css"), READ, ACCESS_VIEW, page_show, "the page's style sheet", "v"},
    {STR("/healthz"), READ, ACCESS_OPEN, native_health, "whether the server is up; needs no token",
     NULL},
    {STR("/sonde/v1/proof"), READ, ACCESS_OPEN, native_proof,
     "a proof that this server knows the token, for clients that have it; needs no token",
     "nonce!"},
    {STR("/metrics"), READ, ACCESS_VIEW, openmetrics_latest,
     "the latest value of every series, for Prometheus", NULL},
#include "aggregator/recording_routes.def"
    {STR("/sonde/v1/stream"), READ, ACCESS_VIEW, native_stream,
     "new points as they come, as server-sent events or in columns", "m! since format"},
    {STR("/sonde/v1/session"), ASK, ACCESS_NOTES, native_session,
     "what the client may do; with POST and a token, the key with which a browser's page may write",
     NULL},
    {STR("/sonde/v1/reboot"), METHOD_POST, ACCESS_RESTART, native_reboot,
     "starts the command again without some hosts; resilient jobs only", "hosts"},
    {STR("/sonde/v1/dump"), METHOD_POST, ACCESS_CONTROL, native_dump,
     "copies every node's data into a folder on the first node; running jobs only", "to since"},
    {STR("/sonde/v1/collectors"), METHOD_POST, ACCESS_HERE, native_collectors,
     "runs a command on every node, whose lines are points, or no more; only from this machine, "
     "with the token",
     "name! command input rate timeout per_gpu"},
    {STR("/sonde/v1/openapi.json"), READ, ACCESS_VIEW, native_openapi,
     "these routes as an OpenAPI document", NULL},
    {STR("/api/query"), ASK, ACCESS_VIEW, opentsdb_query, "points, as OpenTSDB answers",
     "start! m! tsuid end ms arrays show_query show_tsuids show_summary show_stats no_annotations "
     "global_annotations "
     "tz "
     "use_calendar jsonp"},
    {STR("/api/query/last"), ASK, ACCESS_VIEW, opentsdb_last, "the latest point of each series",
     "timeseries tsuids resolve back_scan jsonp"},
    {STR("/api/query/gexp"), READ, ACCESS_VIEW, opentsdb_gexp,
     "functions over queries, as Graphite writes them",
     "start! exp! end ms arrays show_tsuids show_query tz use_calendar jsonp"},
    {STR("/api/query/exp"), METHOD_POST, ACCESS_VIEW, opentsdb_exp,
     "formulas over metrics, answered as tables", NULL},
    {STR("/api/put"), METHOD_POST, ACCESS_WRITE, opentsdb_put,
     "takes points, as OpenTSDB does; running jobs only", NULL},
    {STR("/api/metrics"), METHOD_POST, ACCESS_WRITE, dragon_metrics,
     "takes points in Dragon's form; running jobs only", NULL},
    {STR("/api/ready"), READ, ACCESS_VIEW, dragon_ready,
     "whether the server is up, as Dragon's clients ask", NULL},
    {STR("/api/suggest"), ASK, ACCESS_VIEW, opentsdb_suggest,
     "names of metrics, tag keys, tag values", "type q max jsonp"},
    {STR("/api/search/lookup"), ASK, ACCESS_VIEW, opentsdb_lookup, "series of a metric",
     "m! limit jsonp"},
    {STR("/api/aggregators"), ASK, ACCESS_VIEW, opentsdb_aggregators, "names of the aggregators",
     "jsonp"},
    {STR("/api/config"), ASK, ACCESS_VIEW, opentsdb_configuration,
     "what is configured, by OpenTSDB's names", "jsonp"},
    {STR("/api/config/filters"), ASK, ACCESS_VIEW, opentsdb_filters, "the tag filters, described",
     "jsonp"},
    {STR("/api/annotation"), ASK | METHOD_PUT | METHOD_DELETE, ACCESS_NOTES, opentsdb_annotation,
     "an annotation, by its time; takes one, running jobs only",
     "start_time! end_time description notes tsuid method_override"},
    {STR("/api/annotation/bulk"), METHOD_POST | METHOD_PUT | METHOD_DELETE, ACCESS_NOTES,
     opentsdb_annotation_bulk, "takes annotations, running jobs only", NULL},
    {STR("/api/annotations"), ASK | METHOD_PUT | METHOD_DELETE, ACCESS_NOTES, opentsdb_annotations,
     "the annotations of a time range; takes one, running jobs only", "start_time! end_time"},
    {STR("/api/stats"), ASK, ACCESS_VIEW, opentsdb_stats, "counts of the server itself", "jsonp"},
    {STR("/api/dropcaches"), ASK, ACCESS_VIEW, opentsdb_drop_caches,
     "does nothing: what is kept never differs from the files", "jsonp"},
    {STR("/api/uid/assign"), ASK, ACCESS_VIEW, opentsdb_assign,
     "ids of names: hashes, as nothing has to be assigned", "metric tagk tagv jsonp"},
    {STR("/api/token"), METHOD_POST, ACCESS_OPEN, dragon_token,
     "the token for the key, as Dragon's clients ask; needs no token", NULL},
    {STR("/api/telemetry_shutdown"), READ, ACCESS_VIEW, dragon_shutdown,
     "does nothing: telemetry ends with its job", NULL},
    {STR("/api/set_shutdown"), READ, ACCESS_VIEW, dragon_nothing,
     "does nothing: telemetry ends with its job", NULL},
    {STR("/api/tsdb_cleanup"), METHOD_POST, ACCESS_WRITE, dragon_nothing,
     "does nothing: --window says what is kept", NULL},
    {STR("/api/reboot"), METHOD_POST, ACCESS_CONTROL, dragon_reboot,
     "the same as Dragon's clients ask: hostnames=HOST,HOST", NULL},
    {STR("/api/version"), ASK, ACCESS_VIEW, opentsdb_version, "versions", "jsonp"},
};

const struct route *routes_all(size_t *count)
{
    *count = sizeof routes / sizeof *routes;
    return routes;
}

// Admits requests of Dragon's programs to the server on their node if our own user has sent them.
bool routes_admit_dragon(const struct route *route, struct request *r, struct answer *a)
{
    static const struct str paths[] = {STR("/api/metrics"), STR("/api/ready"),
                                       STR("/api/set_shutdown"), STR("/api/tsdb_cleanup"),
                                       STR("/api/telemetry_shutdown")};
    peer_look_in_proc(&r->peer);
    if (!r->peer.local || !peer_is_own(&r->peer) || request_is_proxied(r)) {
        answer_error(a, 403,
                     "only programs of the job's own user on this machine may send requests here",
                     NULL);
        return false;
    }
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (str_eq(route->path, paths[i]))
            return true;
    answer_error(a, 404, "Endpoint not found",
                 "This port takes points of Dragon's programs; the job's URL answers the rest.");
    return false;
}
