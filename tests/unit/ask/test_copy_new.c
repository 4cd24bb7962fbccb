// A second copy transfers only new data, and the result equals the node's file, whatever the first
// copy contained.
#include "ask/copy_sums.h"
#include "unit/wire/world.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { POINTS = 100000 };

static void append(struct world *w, int64_t count)
{
    for (int64_t until = w->next + count; w->next < until; w->next++)
        store_append(w->store, w->series[w->next % WORLD_SERIES], w->next * 1000,
                     (double)(w->next * 7919 % 100003) / 8);
}

static void span(struct world *w, uint64_t id, int64_t start_ns, int64_t end_ns)
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

static int set_up(void **state)
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

static struct ask_copy_file copy_since(struct world *w, int64_t from_ns)
{
    struct ask_copied copied = world_copy(w, from_ns, NET_PATIENCE_NS);
    assert_int_equal(copied.absent.count, 0);
    assert_int_equal(copied.count, 1);
    return copied.files[0];
}

static struct ask_copy_file copy(struct world *w)
{
    struct ask_copy_file f = copy_since(w, 0);
    if (f.problem)
        fail_msg("%s", f.problem);
    return f;
}

// ---- comparing two files ----

struct points {
    struct store_cursor *cursor;
    const int64_t *t;
    const double *v;
    size_t left;
};

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

// Returns the number of points.
static uint64_t same_since(struct world *w, int64_t from_ns)
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

static uint64_t same(struct world *w)
{
    return same_since(w, INT64_MIN);
}

// ---- new data ----

static void what_is_new_travels(void **state)
{
    struct world *w = *state;
    struct ask_copy_file first = copy(w);
    assert_int_equal(first.way, ASK_COPY_WHOLE);
    assert_int_equal(same(w), POINTS);
    append(w, POINTS / 100);
    uint64_t before = net_stats(w->hub).bytes_in;
    struct ask_copy_file second = copy(w);
    assert_int_equal(second.way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS + POINTS / 100);
    // One or two of 256 slices, and 1 % new points.
    assert_in_range(second.points, POINTS / 100, POINTS / 50);
    assert_true(second.came < first.came / 20);
    assert_in_range(net_stats(w->hub).bytes_in - before, second.came, second.came + 5000);
    // Nothing new.
    struct ask_copy_file third = copy(w);
    assert_int_equal(third.way, ASK_COPY_UNCHANGED);
    assert_int_equal(third.points, 0);
    assert_true(third.came < 1000);
    assert_int_equal(same(w), POINTS + POINTS / 100);
}

static void late_points_and_other_definitions_travel(void **state)
{
    struct world *w = *state;
    copy(w);
    // Points between others and before all, a replaced value, a new series, a new metric, a span
    // that has ended, and an older span.
    store_append(w->store, w->series[0], 12345 * 1000 + 1, 7);
    store_append(w->store, w->series[1], 3, 8);
    store_append(w->store, w->series[2], 2002 * 1000, -9);
    store_append(w->store, world_series(w, "e"), 1000, 1);
    store_define_metric(w->store, &(struct store_metric){.name = STR("n")}, &w->metric);
    store_append(w->store, world_series(w, "a"), 50 * 1000 * 1000, 1);
    span(w, 50, (int64_t)50 * POINTS * 20, INT64_MAX - 1);
    span(w, 51, 77, 78);
    struct ask_copy_file second = copy(w);
    assert_int_equal(second.way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS + 4);
    assert_true(second.points < POINTS / 10);
    // A unit that was unknown before changes all definitions.
    store_define_metric(w->store, &(struct store_metric){.name = STR("n"), .unit = STR("s")},
                        &w->metric);
    assert_int_equal(copy(w).way, ASK_COPY_WHOLE);
    assert_int_equal(same(w), POINTS + 4);
}

// Extreme values and times are equal bit by bit; several rounds, because data at the end of time
// stay in the last slice.
static void edges_are_kept(void **state)
{
    static const uint64_t bits[] = {
        0x8000000000000000, 0x7ff8000000000001, 0xfff8000000000000,
        0x7ff0000000000000, 0xfff0000000000000, 1,
        0x7ff0000000000001, 0x7fefffffffffffff, STORE_MISSING_BITS ^ (1 << 9)};
    struct world *w = *state;
    uint64_t points = POINTS;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        double value;
        memcpy(&value, &bits[i], sizeof value);
        store_append(w->store, w->series[i % WORLD_SERIES], (int64_t)i * 1000 + 1, value);
        store_append(w->store, w->series[i % WORLD_SERIES], INT64_MAX - (int64_t)i, value);
        points += 2;
        if (i % 3 == 0) {
            copy(w);
            assert_int_equal(same(w), points);
        }
    }
}

static void less_and_less_of_it(void **state)
{
    struct world *w = *state;
    for (int64_t i = 1; i <= 3; i++) {
        struct ask_copy_file f = copy_since(w, i * 1000 * 10000);
        assert_null(f.problem);
        assert_int_equal(f.way, i == 1 ? ASK_COPY_WHOLE : ASK_COPY_UPDATED);
        assert_int_equal(same_since(w, i * 1000 * 10000), POINTS - i * 10000);
        assert_true(i == 1 || f.points < POINTS / 100);
    }
    // More points are appended.
    assert_int_equal(copy(w).way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS);
}

// ---- existing copies with other contents ----

static void flip(const char *path, off_t at)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

// Either fails with a message and leaves the file unchanged, or copies the node's data.
static void copy_over(struct world *w)
{
    struct stat before, after;
    stat(w->path, &before);
    struct ask_copy_file f = copy_since(w, 0);
    if (f.problem) {
        assert_non_null(strstr(f.problem, "no copy of this job"));
        stat(w->path, &after);
        assert_int_equal(before.st_ino, after.st_ino);
        unlink(w->path);
        copy(w);
    }
    assert_int_equal(same(w), w->next);
}

static void damaged_copies_are_made_good(void **state)
{
    enum { FLIPS = 24, CUTS = 5 };
    struct world *w = *state;
    struct stat info;
    copy(w);
    for (int i = 0; i < FLIPS; i++) {
        stat(w->path, &info);
        flip(w->path, info.st_size * i / FLIPS);
        copy_over(w);
    }
    for (int i = 0; i < CUTS; i++) {
        stat(w->path, &info);
        assert_int_equal(truncate(w->path, info.st_size * i / CUTS), 0);
        copy_over(w);
    }
}

// A file that claims to be our copy, and is not damaged, but has other contents.
static void a_forged_copy_is_replaced(void **state)
{
    struct world *w = *state;
    copy(w);
    unlink(w->path);
    struct store_label meta[] = {
        {STR("host"), STR("n1")},          {STR("job"), STR("7")},
        {STR("copied_version"), STR("1")}, {STR("copied_range"), STR("0..9223372036854775807")},
        {STR("copied_from"), STR("n1")},   {STR("copied_file"), STR("0")}};
    struct store *forged;
    uint32_t metric, series[2];
    assert_int_equal(
        store_open(w->path, &(struct store_options){.meta = meta, .meta_count = 6}, &forged, NULL),
        0);
    store_define_metric(forged, &(struct store_metric){.name = STR("m"), .unit = STR("bytes")},
                        &metric);
    for (int i = 0; i < 2; i++) {
        struct store_label labels[] = {{STR("host"), STR("n1")},
                                       {STR("k"), i ? STR("x") : STR("a")}};
        store_define_series(forged, metric, labels, 2, &series[i]);
        for (int64_t t = 0; t < 20000; t++)
            store_append(forged, series[i], t * 1000, (double)(t * 7919 % 100003) / 8);
    }
    assert_int_equal(store_close(forged, NULL), 0);
    copy(w);
    assert_int_equal(same(w), POINTS);
}

static void take_answer(struct world *w, struct ask_copy *c, struct str request)
{
    struct wire_view view;
    struct wire_answer a;
    struct error e;
    struct buf record = {0};
    net_open_reader(&w->reader, &view, &e);
    assert_int_equal(ask_answer_begin(&a, ASK_COPY, request, &view, STR("n1"), INT64_MAX, NULL, &e),
                     0);
    while (ask_answer_step(&a, &record, &e) > 0) {
        if (ask_copy_take(c, buf_str(&record), &e))
            fail_msg("%s", e.text);
        record.size = 0;
    }
    ask_answer_end(&a);
    buf_free(&record);
    net_close_reader(NULL, &view);
}

// The copy changes after its sums were sent to the node, so it is requested once more, whole.
static void a_copy_that_changes_meanwhile_comes_whole(void **state)
{
    struct world *w = *state;
    struct ask_copy *c;
    struct error e;
    struct buf request = {0};
    const struct str *hosts;
    const struct ask_copy_file *files;
    size_t count;
    copy(w);
    append(w, 100);
    struct ask_copy_options o = {.folder = w->to, .job = STR("7"), .to_ns = INT64_MAX};
    assert_int_equal(ask_copy_create(&o, &c, &e), 0);
    assert_int_equal(ask_copy_ask(c, NULL, 0, &request, &e), 0);
    struct stat info;
    stat(w->path, &info);
    flip(w->path, info.st_size / 2);
    take_answer(w, c, buf_str(&request));
    assert_int_equal(ask_copy_again(c, &w->arena, &hosts, &count), 0);
    assert_int_equal(count, 1);
    assert_str_equal(hosts[0], "n1");
    request.size = 0;
    assert_int_equal(ask_copy_ask(c, hosts, count, &request, &e), 0);
    take_answer(w, c, buf_str(&request));
    assert_int_equal(ask_copy_again(c, &w->arena, &hosts, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(ask_copy_finish(c, &w->arena, &files, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(files[0].way, ASK_COPY_WHOLE);
    ask_copy_destroy(c);
    buf_free(&request);
    assert_int_equal(same(w), w->next);
}

static int hold_anything(void *user, size_t bytes, struct error *e)
{
    (void)user, (void)bytes, (void)e;
    return 0;
}

static void release_anything(void *user, size_t bytes)
{
    (void)user, (void)bytes;
}

static int give_up(void *user, struct error *e)
{
    return ++*(int *)user > 3 ? error_set(e, -ECONNRESET, "nobody waits") : 0;
}

// Cancelling works while the old file is summed, or taken over.
static void it_can_be_ended(void **state)
{
    struct world *w = *state;
    struct error e;
    int looks = 0;
    struct work_watch watch = {
        .look = give_up, .hold = hold_anything, .release = release_anything, .user = &looks};
    struct hub_where where = {.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                              .watch = &watch};
    struct ask_copy_options o = {.folder = w->to, .job = STR("7"), .to_ns = INT64_MAX};
    struct ask_copied copied;
    copy(w);
    append(w, 1);
    assert_int_equal(hub_copy(w->hub, STR(""), &o, &where, &w->arena, &copied, &e), -ECONNRESET);
    assert_string_equal(e.text, "nobody waits");
    assert_int_equal(copy(w).way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS + 1);
}

struct vandal {
    const char *path;
    off_t at, size;
};

static int damage_some(void *user, struct error *e)
{
    struct vandal *v = user;
    (void)e;
    v->at = (v->at + v->size / 7 + 13) % v->size;
    flip(v->path, v->at);
    return 0;
}

// Another thread writes into the old file all the time; its replacement is correct nevertheless.
static void a_copy_that_is_damaged_all_the_time(void **state)
{
    struct world *w = *state;
    struct error e;
    struct stat info;
    copy(w);
    for (int i = 0; i < 5; i++) {
        append(w, 10);
        stat(w->path, &info);
        struct vandal vandal = {.path = w->path, .at = 4096 + i, .size = info.st_size};
        struct work_watch watch = {.look = damage_some,
                                   .hold = hold_anything,
                                   .release = release_anything,
                                   .user = &vandal};
        struct hub_where where = {.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                                  .watch = &watch};
        struct ask_copy_options o = {.folder = w->to, .job = STR("7"), .to_ns = INT64_MAX};
        struct ask_copied copied;
        if (hub_copy(w->hub, STR(""), &o, &where, &w->arena, &copied, &e))
            fail_msg("%s", e.text);
        assert_int_equal(copied.absent.count, 0);
        assert_int_equal(copied.count, 1);
        if (copied.files[0].problem) {
            assert_non_null(strstr(copied.files[0].problem, "no copy of this job"));
            unlink(w->path);
        }
        // The last write may have come after the file was put there.
        copy_over(w);
    }
}

// Two processes copy into one folder: the second one fails with a message, and does not touch the
// first one's draft.
static void what_somebody_writes_is_left_alone(void **state)
{
    struct world *w = *state;
    struct store *other;
    char part[180];
    struct stat before, after;
    copy(w);
    append(w, 1);
    snprintf(part, sizeof part, "%s/n1.0123456789abcdef.part", w->to);
    assert_int_equal(store_open(part, &(struct store_options){0}, &other, NULL), 0);
    stat(part, &before);
    struct ask_copy_file f = copy_since(w, 0);
    assert_non_null(strstr(f.problem, "is being written at this moment"));
    stat(part, &after);
    assert_int_equal(before.st_ino, after.st_ino);
    // The draft of a killed process is no obstacle.
    store_abandon(other);
    assert_int_equal(copy(w).way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS + 1);
    assert_int_equal(access(part, F_OK), -1);
}

// Another user may write to the folder, too, and has put a link to one of our recordings in the
// place of a possible draft.
static void a_planted_link_is_not_followed(void **state)
{
    enum { US = 4242, OTHER = 65534 };
    struct world *w = *state;
    char link[180], secret[160];
    struct stat before, after;
    struct store *old;
    if (geteuid() != 0)
        skip();
    snprintf(link, sizeof link, "%s/n1.part", w->to);
    snprintf(secret, sizeof secret, "%s/old.sonde", w->folder);
    assert_int_equal(store_open(secret, &(struct store_options){0}, &old, NULL), 0);
    assert_int_equal(store_close(old, NULL), 0);
    assert_int_equal(chown(secret, US, US), 0);
    assert_int_equal(chmod(w->folder, 0711), 0);
    assert_int_equal(mkdir(w->to, 0700), 0);
    assert_int_equal(chmod(w->to, 01777), 0);
    assert_int_equal(symlink(secret, link), 0);
    assert_int_equal(lchown(link, OTHER, OTHER), 0);
    assert_int_equal(stat(secret, &before), 0);
    assert_int_equal(seteuid(US), 0);
    struct ask_copy_file f = copy_since(w, 0);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(stat(secret, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    assert_null(f.problem);
    assert_int_equal(f.way, ASK_COPY_WHOLE);
    unlink(link);
    unlink(secret);
}

// ---- the request ----

static bool wants(void *user, struct str host)
{
    return str_eq(host, str_of(user));
}

static void each_node_is_told_of_its_own_files(void **state)
{
    struct world *w = *state;
    struct ask_copy_known known[] = {
        {.host = STR("n1"), .sums = STR("abc")},
        {.host = STR("n2"), .file = 1, .exact = true, .sums = STR("defg")},
        {.host = STR("n2"), .sums = STR("")}};
    struct ask_copy_request m = {.from_ns = -1, .to_ns = 1, .known = known, .known_count = 3}, read;
    struct buf all = {0}, own = {0};
    ask_copy_request_write(&m, &all);
    assert_int_equal(ask_copy_request_narrow(buf_str(&all), wants, "n2", &own), 0);
    assert_int_equal(ask_copy_request_read(buf_str(&own), &w->arena, &read), 0);
    assert_int_equal(read.from_ns, -1);
    assert_int_equal(read.known_count, 2);
    assert_str_equal(read.known[0].host, "n2");
    assert_str_equal(read.known[0].sums, "defg");
    assert_int_equal(read.known[0].file, 1);
    assert_true(read.known[0].exact && !read.known[1].exact);
    for (size_t size = 0; size < all.size; size++) {
        own.size = 0;
        struct str cut = {all.data, size};
        int r = ask_copy_request_read(cut, &w->arena, &read);
        assert_int_equal(ask_copy_request_narrow(cut, wants, "n2", &own), r);
    }
    buf_free(&all);
    buf_free(&own);
}

static int ignore(void *user, struct str host, struct str record)
{
    (void)user, (void)host, (void)record;
    return 0;
}

static uint64_t bytes_to_n1(struct world *w)
{
    const struct hub_node *nodes;
    size_t count;
    assert_int_equal(hub_nodes(w->hub, &w->arena, &nodes, &count), 0);
    assert_int_equal(count, 1);
    return nodes[0].bytes_out;
}

// However much the request contains about other nodes.
static void what_is_said_of_others_does_not_travel(void **state)
{
    enum { MUCH = 100000 };
    struct world *w = *state;
    static char sums[MUCH];
    const struct wire_missing *missing;
    size_t count;
    struct error e;
    for (int own = 0; own < 2; own++) {
        struct ask_copy_known known = {.host = own ? STR("n1") : STR("n2"), .sums = {sums, MUCH}};
        struct ask_copy_request m = {
            .from_ns = INT64_MAX, .to_ns = INT64_MAX, .known = &known, .known_count = 1};
        struct buf request = {0};
        ask_copy_request_write(&m, &request);
        uint64_t before = bytes_to_n1(w);
        struct hub_ask ask = {.question = ASK_COPY,
                              .request = buf_str(&request),
                              .deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                              .record = ignore};
        assert_int_equal(hub_ask(w->hub, &ask, &w->arena, &missing, &count, &e), 0);
        assert_int_equal(count, 0);
        assert_int_equal(bytes_to_n1(w) - before > MUCH, own);
        buf_free(&request);
    }
}

static void sums_are_read_as_they_were_written(void **state)
{
    struct world *w = *state;
    struct ask_copy_sums *ours = arena_zalloc(&w->arena, sizeof *ours),
                         *theirs = arena_zalloc(&w->arena, sizeof *theirs);
    struct ask_copy_kept kept;
    struct buf text = {0};
    struct wire_view view;
    struct error e;
    net_open_reader(&w->reader, &view, &e);
    assert_int_equal(
        ask_copy_sums_divide(view.stores[0], INT64_MIN, INT64_MAX, ASK_COPY_SLICES_MAX, ours), 0);
    assert_in_range(ours->count, 200, ASK_COPY_SLICES_MAX);
    struct ask_copy_look look;
    ask_copy_look_begin(&look, view.stores[0], INT64_MIN, INT64_MAX, 1, WORLD_SERIES, ours);
    while (ask_copy_look_step(&look) > 0)
        ;
    ask_copy_look_end(&look);
    uint64_t points = 0;
    for (uint32_t i = 0; i <= ours->count; i++) {
        assert_true(ours->point_count[i] < POINTS / 100); // evenly
        points += ours->point_count[i];
    }
    assert_int_equal(points, POINTS);
    ask_copy_sums_write(ours, &text);
    assert_true(text.size < 7000);
    assert_int_equal(ask_copy_sums_read(buf_str(&text), theirs), 0);
    assert_true(ask_copy_sums_compare(ours, theirs, &kept));
    theirs->points[17]++;
    assert_false(ask_copy_sums_compare(ours, theirs, &kept));
    struct ask_copy_stretch stretches[ASK_COPY_STRETCHES_MAX];
    assert_int_equal(ask_copy_stretches(ours, kept.points, false, INT64_MIN, INT64_MAX, stretches),
                     2);
    assert_int_equal(stretches[0].from_ns, ours->ends[16] + 1);
    assert_int_equal(stretches[0].to_ns, ours->ends[17]);
    assert_int_equal(stretches[1].from_ns, ours->ends[ours->count - 1] + 1);
    for (size_t size = 0; size < text.size; size++)
        assert_int_equal(ask_copy_sums_read((struct str){text.data, size}, theirs), -EBADMSG);
    buf_free(&text);
    net_close_reader(NULL, &view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_new_travels, set_up, world_end),
        cmocka_unit_test_setup_teardown(late_points_and_other_definitions_travel, set_up,
                                        world_end),
        cmocka_unit_test_setup_teardown(edges_are_kept, set_up, world_end),
        cmocka_unit_test_setup_teardown(less_and_less_of_it, set_up, world_end),
        cmocka_unit_test_setup_teardown(damaged_copies_are_made_good, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_forged_copy_is_replaced, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_copy_that_changes_meanwhile_comes_whole, set_up,
                                        world_end),
        cmocka_unit_test_setup_teardown(it_can_be_ended, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_copy_that_is_damaged_all_the_time, set_up, world_end),
        cmocka_unit_test_setup_teardown(what_somebody_writes_is_left_alone, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_planted_link_is_not_followed, set_up, world_end),
        cmocka_unit_test_setup_teardown(each_node_is_told_of_its_own_files, set_up, world_end),
        cmocka_unit_test_setup_teardown(what_is_said_of_others_does_not_travel, set_up, world_end),
        cmocka_unit_test_setup_teardown(sums_are_read_as_they_were_written, set_up, world_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
