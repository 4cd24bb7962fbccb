// make_store - writes a recording from lines on standard input, for tests.
//
//   make_store FILE [JOB [HOST]]
//
//   point METRIC K=V,K=V… NS VALUE
//   metric NAME counter|gauge UNIT HELP  must precede the metric's points ("-" for no unit)
//   annotation NS K=V,… TEXT             ("-" for no tags, here and above)
//   span ID PARENT NS NS K=V,… NAME      ("-" as the second time for an open span)
//   seal                                 seals all points in blocks
//   sync                                 prints "ok" when all earlier data is in the file
//   crash                                leaves the file as a killed writer does
//
// At the end of the input it closes the file; until then the file is live.
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what, int rc)
{
    fprintf(stderr, "make_store: %s: %s\n", what, strerror(-rc));
    return 1;
}

static size_t labels_of(struct str text, struct store_label labels[STORE_LABELS_MAX])
{
    size_t count = 0;
    if (str_eq(text, STR("-")))
        return 0;
    while (text.data && count < STORE_LABELS_MAX) {
        struct str value = str_cut(&text, ',');
        labels[count].key = str_cut(&value, '=');
        labels[count++].value = value;
    }
    return count;
}

static int add_point(struct store *s, struct str rest)
{
    struct store_label labels[STORE_LABELS_MAX];
    struct store_metric metric = {.name = str_word(&rest)};
    size_t count = labels_of(str_word(&rest), labels);
    int64_t t_ns;
    double value;
    uint32_t m, series;
    if (!str_to_i64(str_word(&rest), &t_ns) || !str_to_double(str_word(&rest), &value))
        return -EINVAL;
    int rc = store_define_metric(s, &metric, &m);
    if (!rc)
        rc = store_define_series(s, m, labels, count, &series);
    return rc ? rc : store_append(s, series, t_ns, value);
}

static int add_metric(struct store *s, struct str rest)
{
    uint32_t m;
    struct store_metric metric = {.name = str_word(&rest), .level = 1};
    metric.kind = str_eq(str_word(&rest), STR("counter")) ? STORE_COUNTER : STORE_GAUGE;
    metric.unit = str_word(&rest);
    if (str_eq(metric.unit, STR("-")))
        metric.unit = STR("");
    metric.help = str_trim(rest);
    return store_define_metric(s, &metric, &m);
}

static int add_annotation(struct store *s, struct str rest)
{
    struct store_label labels[STORE_LABELS_MAX];
    int64_t t_ns;
    if (!str_to_i64(str_word(&rest), &t_ns))
        return -EINVAL;
    size_t count = labels_of(str_word(&rest), labels);
    struct store_event event = {.kind = STORE_ANNOTATION,
                                .start_ns = t_ns,
                                .end_ns = t_ns,
                                .text = str_trim(rest),
                                .labels = labels,
                                .label_count = count};
    return store_append_event(s, &event);
}

static int add_span(struct store *s, struct str rest)
{
    struct store_label labels[STORE_LABELS_MAX];
    struct store_event event = {.kind = STORE_SPAN, .end_ns = INT64_MAX, .labels = labels};
    if (!str_to_u64(str_word(&rest), &event.id) || !str_to_u64(str_word(&rest), &event.parent) ||
        !str_to_i64(str_word(&rest), &event.start_ns))
        return -EINVAL;
    struct str end = str_word(&rest);
    if (!str_eq(end, STR("-")) && !str_to_i64(end, &event.end_ns))
        return -EINVAL;
    event.label_count = labels_of(str_word(&rest), labels);
    event.text = str_trim(rest);
    return store_append_event(s, &event);
}

int main(int argc, char **argv)
{
    struct store *s;
    struct error e = {0};
    struct store_label meta[] = {{STR("host"), str_of(argc > 3 ? argv[3] : "node1")},
                                 {STR("job"), str_of(argc > 2 ? argv[2] : "test")}};
    struct store_options options = {.meta = meta, .meta_count = meta[1].value.size ? 2 : 1};
    char *line = NULL;
    size_t capacity = 0;
    if (argc < 2 || argc > 4)
        return fail("usage: make_store FILE [JOB [HOST]]", -EINVAL);
    if (store_open(argv[1], &options, &s, &e) != 0)
        return fail(e.text, e.code);
    for (ssize_t size; (size = getline(&line, &capacity, stdin)) > 0;) {
        struct str rest = str_trim((struct str){line, (size_t)size}), verb = str_word(&rest);
        int rc = 0;
        if (str_eq(verb, STR("point"))) {
            rc = add_point(s, rest);
        } else if (str_eq(verb, STR("metric"))) {
            rc = add_metric(s, rest);
        } else if (str_eq(verb, STR("annotation"))) {
            rc = add_annotation(s, rest);
        } else if (str_eq(verb, STR("span"))) {
            rc = add_span(s, rest);
        } else if (str_eq(verb, STR("seal"))) {
            rc = store_seal(s);
        } else if (str_eq(verb, STR("sync"))) {
            puts("ok");
            fflush(stdout);
        } else if (str_eq(verb, STR("crash"))) {
            store_abandon(s);
            free(line);
            return 0;
        } else {
            rc = -EINVAL;
        }
        if (rc)
            return fail(line, rc);
    }
    free(line);
    return store_close(s, &e) ? fail(e.text, e.code) : 0;
}
