// fake_store.h - a struct store that only remembers what was appended, so that tests can check
// every call of the ingest.
#ifndef SONDE_TESTS_FAKE_STORE_H
#define SONDE_TESTS_FAKE_STORE_H

#include "store/store.h"

struct fake_series {
    char *name;   // name of the metric
    char *labels; // "k=v,k=v", sorted by key
    char *unit;
    enum store_kind kind;
    uint64_t count;
    double sum, first, last;
    int64_t first_t_ns, last_t_ns;
    uint64_t falls; // number of values that are smaller than their predecessor
    uint64_t time_falls;
};

struct fake_event {
    enum store_event_kind kind;
    int64_t start_ns, end_ns;
    uint64_t id, parent;
    char *text, *labels;
};

struct fake_set {
    uint32_t *series;
    size_t count;
};

struct store {
    struct fake_series *series;
    size_t series_count, series_capacity;
    char **metrics;
    struct store_metric *metric_facts;
    size_t metric_count, metric_capacity;
    struct fake_set *sets;
    size_t set_count, set_capacity;
    struct fake_event *events;
    size_t event_count, event_capacity;
    uint64_t rows, points;
    uint64_t events_appended; // including those that replaced an earlier one
    size_t series_limit;      // 0 = none
    size_t metric_limit;
    bool keep; // keep every point, in the order of arrival
    struct store_point *kept;
    size_t kept_count, kept_capacity;
};

struct store *fake_store_open(void);
void fake_store_close(struct store *s);

// Returns NULL if not found. `labels` NULL = the first series of that name.
struct fake_series *fake_find(const struct store *s, const char *name, const char *labels);
// number of values in all series of the metric
uint64_t fake_count(const struct store *s, const char *name);
struct fake_event *fake_event(const struct store *s, const char *text, size_t nth);

#endif
