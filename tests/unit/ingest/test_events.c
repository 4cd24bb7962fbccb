// Groups, explicit times, spans, annotations, and values at and above all limits.
#include "emit/segment.h"
#include "node.h"
#include "unit/seed.h"

#include <signal.h>
#include <stdlib.h>

// Whether its process left it open.
static bool is_unfinished(const struct fake_event *e)
{
    return strstr(e->labels, "unfinished=1") != NULL;
}

static void groups_and_times(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, (const char *[]){"SONDE_LEVEL=3", NULL}, "groups", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(child_number(c, "same"), 1);
    assert_int_equal(child_number(c, "none"), 0);
    assert_int_equal(child_number(c, "high"), 0);
    struct fake_series *a = fake_find(n.store, "a", NULL), *b = fake_find(n.store, "b", NULL);
    assert_int_equal(n.store->rows, 3);
    assert_int_equal(a->count, 3); // 1, missing, 5, and the point 9
    assert_true(a->sum == 1 + 5 + 9);
    assert_int_equal(a->last_t_ns, INT64_C(1700000000123456790));
    assert_int_equal(b->count, 3);
    assert_true(b->sum == 3 + 3 + 7);
    assert_int_equal(b->last_t_ns, INT64_C(1700000000123456789));
    assert_null(fake_find(n.store, "too_high", NULL));
    struct ingest_stats s = node_stats(&n);
    // two points with handles that are not metrics, 3 words each
    assert_int_equal(s.dropped_corrupt, 6);
    node_close(&n);
}

static void spans_nest(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, (const char *[]){"PMI_RANK=1", NULL}, "spans", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    struct fake_event *job = fake_event(n.store, "job", 0), *one = fake_event(n.store, "epoch", 0),
                      *two = fake_event(n.store, "epoch", 1),
                      *note = fake_event(n.store, "half time", 0),
                      *past = fake_event(n.store, "past", 0);
    assert_true(job && one && two && note && past);
    assert_string_equal(job->labels, "host=here,job=42,rank=1");
    assert_string_equal(one->labels, "host=here,number=1,phase=train,rank=1");
    // a key without a value is left out
    assert_string_equal(two->labels, "host=here,number=2,rank=1");
    assert_string_equal(note->labels, "file=ck-1,host=here,rank=1");
    assert_int_equal(job->parent, 0);
    assert_true(job->id != 0);
    assert_int_equal(one->parent, job->id);
    assert_int_equal(two->parent, job->id);
    assert_true(one->id != two->id);
    assert_true(job->start_ns <= one->start_ns && one->start_ns <= one->end_ns &&
                one->end_ns <= two->start_ns);
    assert_true(two->start_ns <= note->start_ns && note->start_ns <= two->end_ns &&
                two->end_ns <= job->end_ns);
    assert_int_equal(note->kind, STORE_ANNOTATION);
    assert_int_equal(note->end_ns, note->start_ns);
    assert_int_equal(past->start_ns, 1000);
    assert_int_equal(past->end_ns, 2000);
    assert_string_equal(past->labels, "host=here,k=v,rank=1");
    size_t deep = 0;
    for (struct fake_event *e; (e = fake_event(n.store, "deep", deep)); deep++)
        assert_true(e->end_ns >= e->start_ns && e->end_ns < INT64_MAX &&
                    (e->parent != 0) == (deep > 0));
    assert_in_range(deep, 32, 64); // the others exceed the stack
    struct fake_event *after = fake_event(n.store, "after", 0),
                      *open = fake_event(n.store, "open", 0);
    assert_int_equal(after->parent, 0);
    assert_true(after->end_ns < INT64_MAX);
    assert_string_equal(open->labels, "host=here,rank=1,unfinished=1"); // it ends with its process
    assert_true(open->end_ns > after->end_ns && open->end_ns <= clock_realtime_ns());
    assert_int_equal(node_stats(&n).dropped_limit, 100 - deep);
    assert_int_equal(node_stats(&n).dropped_corrupt, 0);
    node_close(&n);
}

static void spans_of_no_thread(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "free_spans", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    struct fake_event *a = fake_event(n.store, "a", 0), *b = fake_event(n.store, "b", 0),
                      *moved = fake_event(n.store, "moved", 0),
                      *child = fake_event(n.store, "child", 0);
    assert_true(a && b && moved && child);
    assert_string_equal(a->labels, "host=here,k=v");
    assert_true(a->id != b->id && a->id != moved->id && b->id != moved->id);
    assert_int_equal(a->parent, 0);
    assert_int_equal(b->parent, a->id);
    assert_int_equal(moved->parent, b->id);
    assert_true(a->start_ns <= b->start_ns && b->start_ns <= a->end_ns &&
                a->end_ns <= moved->end_ns);
    assert_true(moved->end_ns < INT64_MAX);
    assert_true(is_unfinished(b)); // only a child has tried to close it
    assert_true(b->end_ns >= moved->end_ns && b->end_ns <= clock_realtime_ns());
    assert_int_equal(child->parent, 0); // a span of another process is never its parent
    assert_true(child->end_ns < INT64_MAX);
    assert_null(fake_event(n.store, "none", 0));
    struct fake_event *begun = fake_event(n.store, "begun", 0),
                      *goes_on = fake_event(n.store, "begun and open", 0);
    assert_true(begun->start_ns == 1000 && begun->end_ns == 2000 && begun->parent == b->id);
    assert_string_equal(begun->labels, "host=here,k=v");
    assert_true(goes_on->start_ns == 3000 && goes_on->end_ns >= moved->end_ns &&
                is_unfinished(goes_on));
    struct fake_event *start_given = fake_event(n.store, "start given", 0),
                      *end_given = fake_event(n.store, "end given", 0);
    assert_true(start_given->start_ns == 4000 && start_given->parent == a->id);
    assert_true(start_given->end_ns >= a->end_ns && start_given->end_ns <= b->end_ns);
    assert_true(end_given->start_ns >= a->end_ns && end_given->start_ns <= b->end_ns);
    assert_true(end_given->end_ns == INT64_C(4000000000000000000) &&
                end_given->parent == start_given->id);
    node_close(&n);
}

static void the_clock_is_set_during_spans(void **state)
{
    (void)state;
    if (!clock_ticks_usable()) // programs read the wall clock then
        skip();
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "clock_is_set", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    const char *names[] = {"free", "of a thread"};
    for (int i = 0; i < 2; i++) {
        const struct fake_event *span = fake_event(n.store, names[i], 0);
        assert_true(span && span->end_ns >= span->start_ns);
        assert_true(span->end_ns - span->start_ns < 600 * INT64_C(1000000000));
    }
    node_close(&n);
}

static void a_span_may_outlive_an_agent(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "span_waits", NULL);
    node_until_said(&n, c, "first");
    while (!fake_event(n.store, "long", 0))
        node_round(&n);
    assert_true(fake_event(n.store, "long", 0)->end_ns == INT64_MAX);
    node_agent_stop(&n);
    node_agent_start(&n);
    node_say(c, "\n");
    node_until_all_gone(&n);
    assert_int_equal(n.store->event_count, 1); // the same id
    assert_true(fake_event(n.store, "long", 0)->end_ns < INT64_MAX);
    assert_string_equal(fake_event(n.store, "long", 0)->labels, "host=here,k=v");
    node_close(&n);
}

static void an_ended_span_is_stored_once(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    struct child *c = node_spawn(&n, NULL, "span_pairs", NULL);
    node_until_said(&n, c, "first");
    node_agent_start(&n);
    while (!fake_event(n.store, "open", 0))
        node_round(&n);
    node_say(c, "\n");
    node_until_all_gone(&n);
    size_t shorts = 0;
    for (struct fake_event *e; (e = fake_event(n.store, "short", shorts)); shorts++)
        assert_true(e->end_ns < INT64_MAX);
    assert_int_equal(shorts, 10);
    assert_true(fake_event(n.store, "wide", 0)->end_ns < INT64_MAX);
    assert_true(is_unfinished(fake_event(n.store, "open", 0)));
    // Both ends of a span are events if the look-ahead did not reach the end, and for the open
    // span.
    assert_int_equal(n.store->events_appended, 10 + 2 + 2);
    assert_int_equal(node_stats(&n).dropped_corrupt, 0);
    node_close(&n);
}

static void texts_of_all_sizes(void **state)
{
    (void)state;
    struct node n;
    char seed[24], name[32], tag[64], labels[128];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)test_seed(6) >> 1);
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "span_texts", seed, NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    size_t spans = 0;
    for (const char *line = c->text; sscanf(line, "%31s %63s", name, tag) == 2; spans++) {
        size_t same = 0, equal = 0;
        for (struct fake_event *e; (e = fake_event(n.store, name, same)); same++) {
            bool before_host = strcmp(tag, "host=here") < 0;
            snprintf(labels, sizeof labels, "%s,%s", before_host ? tag : "host=here",
                     before_host ? "host=here" : tag);
            equal += strcmp(e->labels, labels) == 0 && e->end_ns < INT64_MAX;
        }
        if (!equal)
            fail_msg("the span %s %s is not stored (seed %s)", name, tag, seed);
        line = strchr(line, '\n') + 1;
    }
    assert_int_equal(spans, 3 * 20);
    assert_int_equal(n.store->event_count, spans);
    assert_int_equal(node_stats(&n).dropped_corrupt + node_stats(&n).dropped_limit, 0);
    node_close(&n);
}

static void a_span_that_another_thread_closes(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    struct child *c = node_spawn(&n, NULL, "span_of_later_slot", NULL);
    node_until_said(&n, c, "written");
    node_agent_start(&n);
    while (!fake_event(n.store, "first", 0))
        node_round(&n);
    struct fake_event *span = fake_event(n.store, "of a later slot", 0);
    assert_true(span->end_ns < INT64_MAX && !is_unfinished(span));
    node_say(c, "\n");
    node_until_all_gone(&n);
    assert_true(!is_unfinished(fake_event(n.store, "of a later slot", 0)));
    node_close(&n);
}

// Threads open spans and close each other's while agents start and end; then the program is killed.
static void spans_end_with_their_process(void **state)
{
    (void)state;
    uint64_t seed = test_seed(5), random = seed;
    for (unsigned round = 0; round < 2 * test_rounds(); round++) {
        struct node n;
        char seed_text[24];
        node_open(&n);
        snprintf(seed_text, sizeof seed_text, "%llu",
                 (unsigned long long)(test_random(&random) >> 1));
        struct child *c = node_spawn(&n, NULL, "span_crowd", seed_text, NULL);
        while (!strstr(c->text, "written")) {
            if (!n.in)
                node_agent_start(&n);
            for (unsigned rounds = 1 + (unsigned)(test_random(&random) % 20); rounds; rounds--)
                node_round(&n);
            if (test_random(&random) % 4)
                node_agent_stop(&n);
        }
        if (!n.in)
            node_agent_start(&n);
        node_until_said(&n, c, "written");
        int64_t killed_ns = clock_realtime_ns();
        assert_int_equal(kill(c->pid, SIGKILL), 0);
        node_until_all_gone(&n);
        const char *were = strstr(c->text, "state=") + strlen("state=");
        unsigned open = 0;
        for (unsigned i = 0; were[i] != '\n'; i++) {
            char name[16];
            snprintf(name, sizeof name, "s%u", i);
            struct fake_event *e = fake_event(n.store, name, 0);
            if (!e || is_unfinished(e) != (were[i] == 'o') || e->end_ns == INT64_MAX ||
                (e->end_ns >= killed_ns) != (were[i] == 'o'))
                fail_msg("%s was '%c', but %s is stored (seed %llu, round %u)", name, were[i],
                         !e ? "nothing" : e->labels, (unsigned long long)seed, round);
            open += were[i] == 'o';
        }
        assert_true(open > 0 && n.store->event_count == strcspn(were, "\n"));
        node_close(&n);
    }
}

static void at_and_over_limits(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "limits", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    static const struct {
        const char *what;
        uint64_t on;
    } expected[] = {
        {"name255", 1},   {"help4097", 1}, {"name256", 0},   {"empty", 0},     {"blank", 0},
        {"null", 0},      {"letters", 1},  {"unit32", 1},    {"unit33", 0},    {"tag", 1},
        {"value1025", 0}, {"key129", 0},   {"tags15", 1},    {"tags16", 0},    {"order", 1},
        {"twice", 0},     {"kind", 0},     {"group4096", 1}, {"group4097", 0},
    };
    uint64_t refused = 0;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        if (child_number(c, expected[i].what) != expected[i].on)
            fail_msg("%s is %d", expected[i].what, !expected[i].on);
        refused += !expected[i].on;
    }
    assert_int_equal(fake_count(n.store, "member"), 4096);
    struct fake_event *e = NULL;
    for (size_t i = 0; i < n.store->event_count; i++) {
        if (n.store->events[i].kind == STORE_SPAN)
            e = &n.store->events[i];
        else if (n.store->events[i].text[0] == 'x')
            assert_int_equal(strlen(n.store->events[i].text), SEGMENT_TEXT_MAX);
    }
    assert_non_null(e);
    assert_int_equal(strlen(e->text), SEGMENT_NAME_MAX);
    assert_int_equal(strlen(e->labels), 128 + 1 + 1024 + strlen(",host=here"));
    struct fake_event *sixteen = fake_event(n.store, "sixteen", 0);
    assert_non_null(sixteen);
    // Refused: the definitions; the truncated name, the bad tag; the truncated text; the 17th tag.
    // Then the agent leaves out the 16th because of host.
    assert_int_equal(node_stats(&n).dropped_limit, refused + 2 + 1 + 1 + 1);
    assert_int_equal(node_stats(&n).dropped_corrupt, 0);
    node_close(&n);
}

// Each parameter alone, and many in as few annotations as possible.
static void parameters_of_the_run(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "config", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    static const char *const texts[] = {"lr=0.01", "text=a\\sb\\nc\\\\", "a=", "b=", "c=", "d="};
    size_t found = 0;
    assert_int_equal(n.store->event_count, sizeof texts / sizeof *texts);
    for (size_t i = 0; i < n.store->event_count; i++) {
        const struct fake_event *e = &n.store->events[i];
        assert_int_equal(e->kind, STORE_ANNOTATION);
        assert_non_null(strstr(e->labels, "sonde=config"));
        found += strncmp(e->text, texts[i], strlen(texts[i])) == 0;
    }
    assert_int_equal(found, n.store->event_count);
    assert_int_equal(strlen(n.store->events[4].text), 2 + 2 * 1024);
    assert_string_equal(n.store->events[5].text + 2 + 2 * 1024, " e=last");
    // The bad key, the long value, and the key without a value.
    assert_int_equal(node_stats(&n).dropped_limit, 3);
    node_close(&n);
}

static void metrics_up_to_the_limit_are_stored(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    n.store->metric_limit = 0;
    struct child *c = node_spawn(&n, (const char *[]){"SONDE_RING_BYTES=8000000", NULL}, "define",
                                 "140000", NULL);
    node_until_said(&n, c, "dropped=");
    node_until_ended(&n, c);
    assert_int_equal(child_number(c, "on"), SEGMENT_DEFINITIONS_MAX - 1);
    // no agent received their points
    assert_int_equal(child_number(c, "dropped"), SEGMENT_DEFINITIONS_MAX - 1);
    node_close(&n);
}

static void a_full_store_counts_dropped_values(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    n.store->series_limit = 10;
    node_agent_start(&n);
    node_spawn(&n, NULL, "define", "25", NULL);
    node_until_all_gone(&n);
    struct ingest_stats s = node_stats(&n);
    assert_int_equal(s.points, 10);
    assert_int_equal(s.dropped_limit, 15);
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_and_times),
        cmocka_unit_test(spans_nest),
        cmocka_unit_test(spans_of_no_thread),
        cmocka_unit_test(the_clock_is_set_during_spans),
        cmocka_unit_test(a_span_may_outlive_an_agent),
        cmocka_unit_test(an_ended_span_is_stored_once),
        cmocka_unit_test(texts_of_all_sizes),
        cmocka_unit_test(a_span_that_another_thread_closes),
        cmocka_unit_test(spans_end_with_their_process),
        cmocka_unit_test(at_and_over_limits),
        cmocka_unit_test(metrics_up_to_the_limit_are_stored),
        cmocka_unit_test(parameters_of_the_run),
        cmocka_unit_test(a_full_store_counts_dropped_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
