// findings.h - the comparison of members behind /sonde/v1/findings. Internal to findings*.c.
//
//   findings_metrics.c ─┐  values   ┌───────────────────┐  findings
//                       ├──────────▶│ findings_judge.c  │──────────▶ findings.c (the answer)
//   findings_spans.c ───┘           └───────────────────┘
#ifndef SONDE_FACES_NATIVE_FINDINGS_H
#define SONDE_FACES_NATIVE_FINDINGS_H

#include "base/map.h"
#include "detect/rounds.h"
#include "faces/service.h"

struct findings_member {
    const struct store_label *tags;
    size_t tag_count;
    struct query_listed_points points; // for a metric; count 0: not known
};

// One comparison: the series of a metric, or the spans of a name, of one job.
struct findings_measure {
    bool spans;
    struct str name, job; // job: empty unless the files belong to several jobs
    int64_t every_ns;     // length of a round; 0 for spans
    struct rounds rounds;
    struct findings_member *members;
    size_t member_capacity;
    int64_t *spans_of; // by member: number of its spans so far
    size_t spans_of_capacity;
    int64_t first_ns, last_ns, taken_ns; // of spans: first start, last end, all lengths together
    bool left_out;                       // too little to matter
};

struct findings_entry {
    bool now;      // it is slow or silent at the end of the range
    double factor; // silent: infinite
    struct str json;
};

struct findings_search {
    struct service *service;
    struct reading *reading;
    struct arena *arena;
    int64_t from_ns, to_ns, deadline_ns;
    struct reservation reserved;
    size_t values_left;                // of VALUES_ALL_MAX values
    size_t members;                    // of all measures
    struct findings_measure *measures; // of one metric, or of all spans
    size_t measure_count, measure_capacity;
    struct map measure_of; // by job and name
    struct findings_entry *findings;
    size_t finding_count, finding_capacity;
    struct buf json; // the list of compared measures
    struct error *e;
};

// Sets the error; returns -ENOMEM.
int findings_no_memory(struct findings_search *s);

// Reserves memory for so many measures, for all their members and values, and for `more` bytes.
// Arrays grow by doubling, and a growing array exists twice for a moment: up to three times its
// elements.
int findings_reserve(struct findings_search *s, size_t measures, size_t members, size_t values,
                     size_t more);

// Returns the measure of this name and job, made at the first call. NULL without memory.
struct findings_measure *findings_find_measure(struct findings_search *s, bool spans,
                                               struct str name, struct str job);

// Returns the number of the member with these tags, which are copied; -1 without memory, or with
// too many members.
long findings_find_member(struct findings_search *s, struct findings_measure *m,
                          const struct store_label *tags, size_t count);

// Appends the name under which detect.h knows the member with these tags.
void findings_member_name(struct buf *name, const struct store_label *tags, size_t count);

// Returns the value of a tag; empty without the tag.
struct str findings_tag(const struct store_label *tags, size_t count, struct str key);

// Judges all measures, adds their findings, and forgets the measures. -ETIMEDOUT, -ENOMEM.
int findings_judge(struct findings_search *s);
void findings_forget(struct findings_search *s);

// Compares the members of all metrics that measure times (findings_metrics.c), or of all spans
// (findings_spans.c).
int findings_compare_metrics(struct findings_search *s);
int findings_compare_spans(struct findings_search *s);

#endif
