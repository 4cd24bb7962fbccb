// lists_wire.h - NAMES, SERIES, EVENTS and STATUS: lists of all nodes, merged into one.
//
//   NAMES    request   short kind, short text, u8 anywhere, varint most
//            records   names, sorted: short, short, …
//   SERIES   request   short metric (empty: any), varint tags, each: short key, short value;
//                      u8 data (1 latest, 2 points), i64 from_ns, varint most; with points:
//                      i64 from, to, grid
//            records   series of one metric: short name, short unit, short help, u8 kind, u8 level;
//                      then of each series: varint labels, each: short key, short value; u8 whether
//                      it has a latest point, and then i64 t_ns, f64 value; with points: u64 count,
//                      u64 off the grid, i64 first_ns, i64 last_ns, i64 node_last_ns
//   EVENTS   request   i64 from_ns, i64 to_ns, varint most, u8 kinds (bit 7: unfinished spans
//                      alone), short name
//            records   short host, events: u8 kind, i64 start_ns, i64 end_ns, short text, u64 id,
//                      u64 parent, varint labels, each: short key, short value
//   STATUS   request   nothing, or u8 1: with counts
//            records   one per file: short host (the node's), short job, u8 state, u64 version,
//                      u64 metrics, u64 series, u8 whether it holds points, i64 first_ns,
//                      i64 last_ns, u64 damaged blocks, u64 damaged bytes, short damage in words;
//                      with counts: u64 points, u64 dropped
//
// Results in *out live in the caller's arena.
#ifndef SONDE_ASK_LISTS_WIRE_H
#define SONDE_ASK_LISTS_WIRE_H

#include "ask/hub_ask_all.h"
#include "ask/query_wire.h"
#include "query/listing.h"

enum {
    ASK_LIST_MAX = 1000000, // names, series or events in one answer, if the request's `most` is 0
    ASK_TAGS_MAX = 64,      // tags in a SERIES request
};

struct ask_names_request {
    struct str kind, text; // as for query_suggest
    bool anywhere;
    size_t most;
};
void ask_names_request_write(const struct ask_names_request *m, struct buf *out);
int ask_names_request_read(struct str request, struct ask_names_request *out);

void ask_series_request_write(const struct query_series_filter *m, struct buf *out);
int ask_series_request_read(struct str request, struct arena *arena,
                            struct query_series_filter *out);

// Take functions: each adds one record to a growing list. They return 0, -EBADMSG, -ENOMEM or
// -E2BIG.
struct ask_series_list {
    struct arena *arena;
    struct query_listed *series;
    size_t count, capacity, most;
    bool points; // the request asks for points
};
int ask_series_take(struct ask_series_list *list, struct str record);

// A node sends only the requested kinds of events, because a job has millions of spans beside a few
// annotations. `most` limits the events of each file; if it is 0, ASK_LIST_MAX does.
void ask_events_request_write(const struct store_event_selection *m, struct buf *out);
int ask_events_request_read(struct str request, struct store_event_selection *out);
struct ask_event {
    struct store_event event;
    struct str host; // the node that recorded it
};
struct ask_event_list {
    struct arena *arena;
    struct ask_event *events;
    size_t count, capacity, most;
};
int ask_events_take(struct ask_event_list *list, struct str record);

struct ask_status {
    struct str host, job;
    enum store_state state;
    uint64_t version, metrics, series;
    bool has_points;
    int64_t first_ns, last_ns;
    struct store_damage damage;
    uint64_t points, dropped; // 0 unless the request asks for counts
};
int ask_status_read(struct str record, struct arena *arena, struct ask_status *out);

// ---- requests to all nodes and to our own stores (where->local) ----

// Returns names, sorted, without duplicates, at most `most`.
int hub_names(struct hub *h, const struct ask_names_request *m, const struct hub_where *where,
              struct arena *arena, const struct str **out, size_t *count, struct hub_absent *absent,
              struct error *e);

// Returns series, sorted by metric, then by labels. A series of several nodes appears once, with
// its latest point. The result is -E2BIG for more than `most` series.
int hub_series(struct hub *h, const struct query_series_filter *m, const struct hub_where *where,
               struct arena *arena, const struct query_listed **out, size_t *count,
               struct hub_absent *absent, struct error *e);

// Returns events, sorted by start.
int hub_events(struct hub *h, const struct store_event_selection *m, const struct hub_where *where,
               struct arena *arena, const struct ask_event **out, size_t *count,
               struct hub_absent *absent, struct error *e);

// Returns the state of all files, sorted by host. With `counts`, it adds the numbers of points and
// of dropped points; nodes then read all series.
int hub_status(struct hub *h, bool counts, const struct hub_where *where, struct arena *arena,
               const struct ask_status **out, size_t *count, struct hub_absent *absent,
               struct error *e);

#endif
