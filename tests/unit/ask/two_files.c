#include "two_files.h"

void append(struct world *w, int64_t count)
{
    for (int64_t until = w->next + count; w->next < until; w->next++)
        store_append(w->store, w->series[w->next % WORLD_SERIES], w->next * 1000,
                     (double)(w->next * 7919 % 100003) / 8);
}

void span(struct world *w, uint64_t id, int64_t start_ns, int64_t end_ns)
{
    struct store_label label = {STR("rank"), STR("3")};
    struct store_event event = {.start_ns = start_ns,
                                .end_ns = end_ns,
                                .text = STR("phase"),
                                .id = id,
                                .labels = &label,
                                .label_count = 1};
    assert_int_equal(store_append_event(w->store, &event), 0);
}

int set_up(void **state)
{
    struct world *w = *state = world_begin();
    store_define_metric(w->store, &(struct store_metric){.name = STR("m"), .unit = STR("bytes")},
                        &w->metric);
    static const char *const names[WORLD_SERIES] = {"a", "b", "c", "d"};
    for (int i = 0; i < WORLD_SERIES; i++)
        w->series[i] = world_series(w, names[i]);
    append(w, POINTS);
    for (uint64_t id = 1; id <= 50; id++)
        span(w, id, (int64_t)id * POINTS * 20,
             id == 50 ? INT64_MAX : (int64_t)id * POINTS * 20 + 5);
    world_connect(w, false);
    return 0;
}

struct ask_copy_file copy_since(struct world *w, int64_t from_ns)
{
    struct ask_copied copied = world_copy(w, from_ns, NET_PATIENCE_NS);
    assert_int_equal(copied.absent.count, 0);
    assert_int_equal(copied.count, 1);
    return copied.files[0];
}

struct ask_copy_file copy(struct world *w)
{
    struct ask_copy_file f = copy_since(w, 0);
    if (f.problem)
        fail_msg("%s", f.problem);
    return f;
}

static bool next_point(struct points *p)
{
    struct store_run run;
    if (p->left > 1) {
        p->t++;
        p->v++;
        p->left--;
        return true;
    }
    do {
        if (store_cursor_next(p->cursor, &run) <= 0)
            return false;
        assert_int_equal(store_cursor_points(p->cursor, &p->t, &p->v, &p->left), 0);
    } while (p->left == 0);
    return true;
}

static uint64_t same_points(struct store_snapshot *a, struct store_snapshot *b, uint32_t series,
                            int64_t from_ns)
{
    struct points x = {.cursor = store_cursor_open(a, series, from_ns, INT64_MAX)},
                  y = {.cursor = store_cursor_open(b, series, INT64_MIN, INT64_MAX)};
    uint64_t n = 0;
    for (bool more = true; more; n += more) {
        more = next_point(&x);
        assert_int_equal(next_point(&y), more);
        if (!more)
            break;
        assert_int_equal(*x.t, *y.t);
        assert_memory_equal(x.v, y.v, sizeof *x.v);
    }
    store_cursor_close(x.cursor);
    store_cursor_close(y.cursor);
    return n;
}

static bool add_event(const struct store_event *event, void *user)
{
    struct buf *text = user;
    buf_printf(text, "%d %lld %lld %.*s %llu %llu", (int)event->kind, (long long)event->start_ns,
               (long long)event->end_ns, STR_ARG(event->text), (unsigned long long)event->id,
               (unsigned long long)event->parent);
    for (size_t i = 0; i < event->label_count; i++)
        buf_printf(text, " %.*s=%.*s", STR_ARG(event->labels[i].key),
                   STR_ARG(event->labels[i].value));
    buf_add_char(text, '\n');
    return true;
}

uint64_t same_since(struct world *w, int64_t from_ns)
{
    struct store_reader *r;
    struct error e;
    struct wire_view view;
    struct buf events[2] = {{0}};
    uint64_t n = 0;
    net_open_reader(&w->reader, &view, &e);
    if (store_reader_open(w->path, &r, &e))
        fail_msg("%s", e.text);
    struct store_snapshot *s = store_snapshot_open(r);
    assert_int_equal(store_reader_state(r), STORE_CLOSED);
    assert_str_equal(store_reader_meta(r, STR("job")), "7");
    assert_int_equal(store_metric_count(s), store_metric_count(view.stores[0]));
    assert_int_equal(store_series_count(s), store_series_count(view.stores[0]));
    for (uint32_t i = 0; i < store_metric_count(s); i++) {
        assert_true(
            str_eq(store_metric_get(s, i)->name, store_metric_get(view.stores[0], i)->name));
        assert_true(
            str_eq(store_metric_get(s, i)->unit, store_metric_get(view.stores[0], i)->unit));
    }
    for (uint32_t i = 0; i < store_series_count(s); i++)
        n += same_points(view.stores[0], s, i, from_ns);
    store_events(view.stores[0], from_ns, INT64_MAX, add_event, &events[0]);
    store_events(s, from_ns, INT64_MAX, add_event, &events[1]);
    assert_string_equal(buf_cstr(&events[0]), buf_cstr(&events[1]));
    struct store_damage damage;
    store_reader_damage(r, &damage);
    assert_int_equal(damage.blocks, 0);
    buf_free(&events[0]);
    buf_free(&events[1]);
    store_snapshot_close(s);
    store_reader_close(r);
    net_close_reader(NULL, &view);
    return n;
}

uint64_t same(struct world *w)
{
    return same_since(w, INT64_MIN);
}

int hold_anything(void *user, size_t bytes, struct error *e)
{
    (void)user, (void)bytes, (void)e;
    return 0;
}

void release_anything(void *user, size_t bytes)
{
    (void)user, (void)bytes;
}
