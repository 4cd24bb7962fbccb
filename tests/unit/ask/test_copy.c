// Copies of nodes' files: complete, of one moment, or absent.
#include "unit/wire/world.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

enum { POINTS = 200000, BATCH = 100 };

static double value_at(int64_t i)
{
    return (double)(i * 7919 % 100003) / 8;
}

static void append(struct world *w, int64_t count)
{
    for (int64_t until = w->next + count; w->next < until; w->next++) {
        store_append(w->store, w->series[0], w->next * 1000, value_at(w->next));
        if (w->next % 10 == 0)
            store_append(w->store, w->series[1], w->next * 1000, -1);
    }
}

static int set_up(void **state)
{
    struct world *w = *state = world_begin();
    store_define_metric(
        w->store,
        &(struct store_metric){.name = STR("m"), .unit = STR("bytes"), .kind = STORE_COUNTER},
        &w->metric);
    w->series[0] = world_series(w, "a");
    w->series[1] = world_series(w, "b");
    store_append_event(
        w->store, &(struct store_event){.start_ns = 5, .end_ns = 9, .text = STR("phase"), .id = 1});
    append(w, POINTS);
    world_connect(w, true);
    return 0;
}

// Copies from a node that answers in time.
static const struct ask_copy_file *copy(struct world *w, int64_t from_ns)
{
    struct ask_copied copied = world_copy(w, from_ns, NET_PATIENCE_NS);
    assert_int_equal(copied.absent.count, 0);
    assert_int_equal(copied.count, 1);
    return copied.files;
}

static size_t files_in(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *d = readdir(dir); d; d = readdir(dir))
        n += d->d_name[0] != '.';
    closedir(dir);
    return n;
}

static bool count_event(const struct store_event *event, void *user)
{
    assert_str_equal(event->text, "phase");
    ++*(size_t *)user;
    return true;
}

// Checks that the copy's first series has value_at(first), value_at(first + 1), …; returns their
// number.
static int64_t check_copy(const char *path, int64_t first)
{
    struct store_reader *r;
    struct error e;
    if (store_reader_open(path, &r, &e))
        fail_msg("%s", e.text);
    struct store_snapshot *s = store_snapshot_open(r);
    assert_int_equal(store_reader_state(r), STORE_CLOSED);
    assert_str_equal(store_reader_meta(r, STR("host")), "n1");
    assert_str_equal(store_reader_meta(r, STR("job")), "7");
    assert_int_equal(store_series_count(s), 2);
    assert_str_equal(store_metric_get(s, 0)->unit, "bytes");
    assert_int_equal(store_metric_get(s, 0)->kind, STORE_COUNTER);
    struct store_cursor *c = store_cursor_open(s, 0, INT64_MIN, INT64_MAX);
    struct store_run run;
    int64_t i = first;
    while (store_cursor_next(c, &run) > 0) {
        const int64_t *t;
        const double *v;
        size_t n;
        assert_int_equal(store_cursor_points(c, &t, &v, &n), 0);
        for (size_t k = 0; k < n; k++, i++) {
            assert_int_equal(t[k], i * 1000);
            assert_true(v[k] == value_at(i));
        }
    }
    store_cursor_close(c);
    store_snapshot_close(s);
    store_reader_close(r);
    return i - first;
}

static atomic_bool stop_appending;

static void *go_on_appending(void *user)
{
    while (!atomic_load(&stop_appending)) {
        append(user, BATCH);
        store_tick(((struct world *)user)->store, 0);
    }
    return NULL;
}

static void a_copy_has_the_data_of_one_moment(void **state)
{
    struct world *w = *state;
    size_t events = 0;
    pthread_t writer;
    atomic_store(&stop_appending, false);
    pthread_create(&writer, NULL, go_on_appending, w);
    const struct ask_copy_file *files = copy(w, 0);
    atomic_store(&stop_appending, true);
    pthread_join(writer, NULL);
    assert_str_equal(files[0].host, "n1");
    int64_t points = check_copy(files[0].path, 0);
    assert_true(points >= POINTS && points <= w->next);
    // Both series are from the same moment. The second series has every tenth point; the last one
    // may not have been appended yet.
    int64_t both = points + (points + 9) / 10;
    assert_in_range(files[0].points, both - 1, both);
    struct store_reader *r;
    assert_int_equal(store_reader_open(files[0].path, &r, NULL), 0);
    struct store_snapshot *s = store_snapshot_open(r);
    store_events(s, 0, 100, count_event, &events);
    assert_int_equal(events, 1);
    store_snapshot_close(s);
    store_reader_close(r);
}

static void unchanged_data_are_not_copied_again(void **state)
{
    struct world *w = *state;
    struct stat before, after;
    const struct ask_copy_file *files = copy(w, 0);
    assert_int_not_equal(files[0].way, ASK_COPY_UNCHANGED);
    uint64_t bytes = net_stats(w->hub).bytes_in;
    stat(files[0].path, &before);
    files = copy(w, 0);
    assert_int_equal(files[0].way, ASK_COPY_UNCHANGED);
    stat(files[0].path, &after);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_true(net_stats(w->hub).bytes_in - bytes < 10000);
    // A copy of a part does not replace a copy of all time.
    files = copy(w, 1000 * 1000);
    assert_non_null(strstr(files[0].problem, "a copy of all time"));
    assert_int_equal(check_copy(files[0].path, 0), POINTS);
    // Another period, or new data, gives another file.
    unlink(files[0].path);
    files = copy(w, 1000 * 1000);
    assert_int_not_equal(files[0].way, ASK_COPY_UNCHANGED);
    assert_int_equal(check_copy(files[0].path, 1000), POINTS - 1000);
    files = copy(w, 0);
    append(w, 1);
    files = copy(w, 0);
    assert_int_not_equal(files[0].way, ASK_COPY_UNCHANGED);
    assert_int_equal(check_copy(files[0].path, 0), POINTS + 1);
    assert_int_equal(files_in(w->to), 1);
}

static void a_lost_node_leaves_no_partial_file(void **state)
{
    struct world *w = *state;
    proxy_stall(w->proxy, true);
    struct ask_copied copied = world_copy(w, 0, 100 * NS_PER_MS);
    assert_int_equal(copied.count, 0);
    assert_int_equal(copied.absent.count, 1);
    assert_str_equal(copied.absent.nodes[0].host, "n1");
    assert_int_equal(files_in(w->to), 0);
    proxy_stall(w->proxy, false);
    // A few bytes at a time, so that the deadline passes in the middle of the file.
    proxy_slice(w->proxy, 64);
    copied = world_copy(w, 0, 100 * NS_PER_MS);
    assert_int_equal(files_in(w->to), copied.count);
    assert_int_equal(copied.count + copied.absent.count, 1);
    proxy_slice(w->proxy, 0);
    assert_int_equal(check_copy(copy(w, 0)->path, 0), POINTS);
}

// An existing file that is not a copy of this job stays unchanged, and the message gives the
// reason.
static void other_files_are_not_replaced(void **state)
{
    struct world *w = *state;
    const char *path = w->path;
    struct store *store;
    const char *const jobs[] = {"7", "8"};
    for (int i = 0; i < 3; i++) {
        mkdir(w->to, 0700);
        // A recording; a copy of another job; any other file.
        struct store_label meta[] = {{STR("host"), STR("n1")},
                                     {STR("job"), str_of(jobs[i == 1])},
                                     {STR("copied_version"), STR("1")}};
        struct store_options o = {.meta = meta, .meta_count = i == 1 ? 3 : 2};
        if (i < 2) {
            assert_int_equal(store_open(path, &o, &store, NULL), 0);
            assert_int_equal(store_close(store, NULL), 0);
        } else {
            FILE *f = fopen(path, "w");
            fputs("notes", f);
            fclose(f);
        }
        struct stat before, after;
        stat(path, &before);
        assert_non_null(strstr(copy(w, 0)->problem, "not a copy of this job"));
        stat(path, &after);
        assert_int_equal(before.st_ino, after.st_ino);
        assert_int_equal(before.st_size, after.st_size);
        assert_int_equal(files_in(w->to), 1);
        unlink(path);
    }
}

// Whatever record is changed or left out, the file does not appear, and nothing else does.
static void a_damaged_record_spoils_its_file_only(void **state)
{
    struct world *w = *state;
    struct wire_view view;
    struct error e;
    struct buf request = {0}, records[16] = {{0}};
    size_t n = 0;
    net_open_reader(&w->reader, &view, &e);
    ask_copy_request_write(&(struct ask_copy_request){.to_ns = 100 * 1000}, &request);
    struct wire_answer a;
    assert_int_equal(
        ask_answer_begin(&a, ASK_COPY, buf_str(&request), &view, STR("n1"), INT64_MAX, NULL, &e),
        0);
    while (ask_answer_step(&a, &records[n], &e) > 0)
        n++;
    ask_answer_end(&a);
    net_close_reader(NULL, &view);
    assert_int_equal(n, 8); // a file, its metric, two series, their points, an event, the end
    for (size_t bad = 0; bad <= n; bad++)
        for (int how = 0; how < 3; how++) {
            struct ask_copy *c;
            const struct ask_copy_file *files;
            size_t count;
            assert_int_equal(
                ask_copy_create(&(struct ask_copy_options){.folder = w->to, .to_ns = INT64_MAX}, &c,
                                &e),
                0);
            int r = 0;
            for (size_t i = 0; i < n && r == 0; i++) {
                struct str record = buf_str(&records[i]);
                char changed[4096];
                assert_true(record.size < sizeof changed);
                memcpy(changed, record.data, record.size);
                changed[record.size - 1] ^= 1;
                if (i == bad && how == 0)
                    record = (struct str){changed, record.size};
                else if (i == bad && how == 1)
                    record.size--;
                else if (i == bad)
                    continue; // lost
                r = ask_copy_take(c, record, &e);
            }
            assert_int_equal(ask_copy_finish(c, &w->arena, &files, &count), 0);
            assert_int_equal(count, bad == n);
            assert_int_equal(files_in(w->to), bad == n);
            ask_copy_destroy(c);
        }
    // A name that would lead to another folder.
    struct ask_copy *c;
    struct buf evil = {0};
    assert_int_equal(
        ask_copy_create(&(struct ask_copy_options){.folder = w->to, .to_ns = INT64_MAX}, &c, &e),
        0);
    buf_short(&evil, STR("../n1"));
    buf_varint(&evil, 0);
    buf_u8(&evil, 'u');
    assert_int_equal(ask_copy_take(c, buf_str(&evil), &e), -EBADMSG);
    ask_copy_destroy(c);
    buf_free(&evil);
    buf_free(&request);
    for (size_t i = 0; i <= n; i++)
        buf_free(&records[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_copy_has_the_data_of_one_moment, set_up, world_end),
        cmocka_unit_test_setup_teardown(unchanged_data_are_not_copied_again, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_lost_node_leaves_no_partial_file, set_up, world_end),
        cmocka_unit_test_setup_teardown(other_files_are_not_replaced, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_damaged_record_spoils_its_file_only, set_up, world_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
