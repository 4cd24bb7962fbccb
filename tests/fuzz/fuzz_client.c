// Requests lists, peaks and statistics with sonde_client.h from a hostile server. The input has the
// server's answers, one per request: u8 kind of failure, u16 size, bytes. fuzz_client_result covers
// the columns of an answer.
#include "base/bytes.h"
#include "client/origin.h"
#include "faces/native/binary.h"
#include "sonde_client.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes answers;

// ---- replacements of the functions of origin.c ----

int target_find(const char *where, const char *token, const struct target_options *options,
                struct target *out, struct error *e)
{
    (void)where, (void)token, (void)options, (void)e;
    *out = (struct target){.kind = TARGET_JOB};
    return 0;
}

void target_free(struct target *t)
{
    (void)t;
}

int origin_open(struct target *targets, size_t count, struct origin **out, struct error *e)
{
    (void)targets, (void)count, (void)e;
    *out = (struct origin *)&answers;
    return 0;
}

void origin_close(struct origin *o)
{
    (void)o;
}

bool origin_is_recording(const struct origin *o)
{
    (void)o;
    return false;
}

const char *origin_name(const struct origin *o)
{
    (void)o;
    return "nowhere";
}

int origin_points(struct origin *o, struct str body, int timeout_ms,
                  struct embedded_server_points *out, struct error *e)
{
    (void)o, (void)body, (void)timeout_ms, (void)out, (void)e;
    return -ENOTSUP;
}

int origin_ask(struct origin *o, const char *path, struct str body, const char *type,
               int timeout_ms, const struct origin_look *look, struct http_answer *out,
               struct error *e)
{
    static const int codes[] = {-ECONNREFUSED, -EINVAL, -EPROTO};
    (void)o, (void)type, (void)timeout_ms, (void)look;
    if (path[0] != '/')
        abort();
    *out = (struct http_answer){.status = 200};
    uint8_t wrong = bytes_u8(&answers);
    struct str text = bytes_take(&answers, bytes_u16(&answers));
    if (answers.failed || wrong >= 250)
        return error_set(e, codes[wrong % 3], wrong % 2 ? "No such name: x" : "nobody is there");
    if (body.data)
        buf_add_str(&out->body, STR(NATIVE_BINARY_MAGIC)); // so that the fuzzer need not find it
    buf_add_str(&out->body, text);
    if (wrong > 200)
        out->missing = strdup("n2 (late)");
    return 0;
}

// ---- requests ----

static size_t read_text(const char *text)
{
    return strlen(text); // reads the whole text, for the sanitizer
}

static size_t lists(struct sonde_client *c, unsigned which)
{
    struct sonde_error e = {0};
    struct sonde_node *nodes = NULL;
    struct sonde_metric_info *metrics = NULL;
    struct sonde_series_info *series = NULL;
    struct sonde_event *events = NULL;
    size_t count = 0, sum = 0;
    int rc = which == 0   ? sonde_client_nodes(c, &nodes, &count, &e)
             : which == 1 ? sonde_client_metrics(c, "a b%", &metrics, &count, &e)
             : which == 2 ? sonde_client_list(c, NULL, &series, &count, &e)
             : which == 3 ? sonde_client_spans(c, "epoch", "1h-ago", NULL, &events, &count, &e)
                          : sonde_client_annotations(c, NULL, NULL, &events, &count, &e);
    if (rc ? !e.text[0] || count : false)
        abort();
    for (size_t i = 0; i < count; i++) {
        const struct sonde_tag *tags = series ? series[i].tags : events ? events[i].tags : NULL;
        size_t tag_count = series ? series[i].tag_count : events ? events[i].tag_count : 0;
        sum += nodes
                   ? read_text(nodes[i].host) + read_text(nodes[i].job) + read_text(nodes[i].state)
               : metrics ? read_text(metrics[i].name) + read_text(metrics[i].unit) +
                               read_text(metrics[i].help)
               : series ? read_text(series[i].metric)
                        : read_text(events[i].text) + read_text(events[i].node);
        for (size_t k = 0; k < tag_count; k++)
            sum += read_text(tags[k].key) + read_text(tags[k].value);
    }
    sonde_list_free(nodes);
    sonde_list_free(metrics);
    sonde_list_free(series);
    sonde_list_free(events);
    return sum;
}

static size_t read_result(struct sonde_result *r)
{
    size_t sum = 0;
    for (size_t i = 0; i < sonde_result_count(r); i++) {
        const struct sonde_series *s = sonde_result_series(r, i);
        for (size_t k = 0; k < s->count; k++)
            sum += (size_t)s->time_ns[k] + (s->values[k] > 0);
    }
    sonde_result_free(r);
    return sum;
}

static size_t peaks(struct sonde_client *c, bool grouped)
{
    static const char *const by[] = {"host", "gpu", NULL};
    const struct sonde_query q = {.metric = "m"};
    struct sonde_error e = {0};
    struct sonde_result *r = NULL;
    if (sonde_client_peaks(c, &q, grouped ? by : NULL, &r, &e) != 0 && !e.text[0])
        abort();
    return r ? read_result(r) : 0;
}

static size_t statistics(struct sonde_client *c, bool spans)
{
    static const char *const by[] = {"host", NULL};
    const struct sonde_stats_query q = {
        .expression = "m", .by = spans ? NULL : by, .span = spans ? "epoch" : NULL};
    struct sonde_error e = {0};
    struct sonde_stats *s = NULL;
    size_t sum = 0;
    if (sonde_client_stats(c, &q, &s, &e) != 0 && !e.text[0])
        abort();
    for (size_t i = 0; s && i < s->count; i++)
        sum += (size_t)s->rows[i].count + (s->rows[i].integral > 0);
    sonde_stats_free(s);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sonde_client *c;
    if (size < 1)
        return 0;
    answers = bytes_of((const char *)data + 1, size - 1);
    if (sonde_client_open("nowhere", NULL, &c, NULL) != 0)
        abort();
    unsigned which = data[0] % 8;
    size_t sum = which < 5    ? lists(c, which)
                 : which == 5 ? peaks(c, size % 2)
                              : statistics(c, which == 6);
    __asm__ volatile("" : : "r"(sum)); // keeps the compiler from removing the reads
    sonde_client_close(c);
    return 0;
}
