#include "named_answers.h"

static int count_record(void *user, struct str host, struct str record)
{
    size_t *count = user;
    (void)host;
    (void)record;
    ++*count;
    return 0;
}

struct asked_names ask_with(struct hub *h, int64_t patience_ns, const struct str *hosts,
                            size_t host_count, const atomic_bool *cancel)
{
    struct asked_names a = {0};
    struct buf request = {0};
    struct query q = {.metric = STR("unknown"), .aggregator = QUERY_SUM, .end_ns = 1};
    query_plan_write(&q, NULL, &request);
    struct hub_ask ask = {.question = ASK_QUERY,
                          .request = buf_str(&request),
                          .hosts = hosts,
                          .host_count = host_count,
                          .deadline_ns = clock_monotonic_ns() + patience_ns,
                          .cancel = cancel,
                          .record = count_record,
                          .user = &a.records};
    a.code = hub_ask(h, &ask, &a.arena, &a.missing, &a.missing_count, NULL);
    buf_free(&request);
    return a;
}

size_t answers(struct hub *h)
{
    struct asked_names a = ask_with(h, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(a.code, 0);
    arena_free(&a.arena);
    return a.records;
}

void expect_missing(const struct asked_names *a, size_t i, const char *host,
                    enum wire_reason reason)
{
    assert_true(i < a->missing_count);
    assert_str_equal(a->missing[i].host, host);
    if (a->missing[i].reason != reason)
        fail_msg("%s is missing: %s, want %s", host, wire_reason_name(a->missing[i].reason),
                 wire_reason_name(reason));
}
