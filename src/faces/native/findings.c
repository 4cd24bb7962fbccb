// findings.c - /sonde/v1/findings: finds members that are slower than the others, in all metrics
// and spans that measure times. The client need not name a metric or a tag.
//
//   measure                              members              round
//   a gauge in seconds, not built in     its series           twice the usual step of its points;
//                                                             at most 360 rounds
//   spans of one name                    a node's rank,       the k-th span of each member
//                                        worker or process
//
// Members of different jobs are not compared. A measure needs two members. detect/detect.h judges
// with its default options, so `sonde detect` names the same slow members.
//
// A member of a metric is silent if it has given no value in the last rounds although the others
// have, and the recording proves that it should have: its node goes on, its values are not samples
// by the clock (those end with their process), and every member that goes on has given more of
// them. So a member that has finished first is not silent.
//
// Costs: a value takes 1 to 10 µs, because each round may judge the previous 32 again. Longer
// rounds keep a measure within VALUES_MAX values, and all metrics together within VALUES_ALL_MAX
// (some 4 s). An answer has at most METRICS_MAX metrics and SPANS_MAX spans. Memory: 96 bytes a
// value or span while it is compared, 4 KB a member; for 100,000 values of 1,000 members 14 MB. All
// of it is reserved with the request before it is allocated.
#include "faces/native/findings.h"

#include "faces/native/handlers.h"

#include <stdlib.h>

enum {
    VALUES_ALL_MAX = 400000,
    FINDINGS_MAX = 100, // in an answer: the worst ones
};

static int worst_first(const void *a, const void *b)
{
    const struct findings_entry *x = a, *y = b;
    if (x->now != y->now)
        return x->now ? -1 : 1;
    return (x->factor < y->factor) - (x->factor > y->factor);
}

static int write_findings(struct findings_search *s, struct json_writer *w)
{
    int rc = findings_compare_metrics(s);
    if (!rc)
        rc = findings_compare_spans(s);
    if (!rc && s->json.failed)
        rc = findings_no_memory(s);
    if (s->finding_count)
        qsort(s->findings, s->finding_count, sizeof *s->findings, worst_first);
    json_key_u64(w, "total", s->finding_count);
    json_key(w, STR("findings"));
    json_begin_array(w);
    for (size_t i = 0; i < s->finding_count && i < FINDINGS_MAX && !rc; i++)
        json_put_raw(w, s->findings[i].json);
    json_end_array(w);
    json_key(w, STR("measures"));
    json_begin_array(w);
    if (s->json.size)
        json_put_raw(w, buf_str(&s->json));
    json_end_array(w);
    return rc;
}

void native_findings(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct reading d;
    struct findings_search s = {.service = service,
                                .reading = &d,
                                .arena = &r->arena,
                                .values_left = VALUES_ALL_MAX,
                                .deadline_ns = r->arrived_ns + service->limits.query_deadline_ns,
                                .e = &e};
    int rc = native_times(service, r, &s.from_ns, &s.to_ns, &e);
    if (!rc)
        rc = service_read(service, r, s.to_ns, &d, &e);
    if (rc) {
        answer_failure(a, &e);
        return;
    }
    s.reserved.watch = d.request.watch;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    rc = write_findings(&s, &w);
    findings_forget(&s);
    free(s.measures);
    free(s.findings);
    buf_free(&s.json);
    reading_write_missing(&d, &w);
    json_end_object(&w);
    if (rc)
        answer_failure(a, &e);
    service_read_end(&d, a);
}
