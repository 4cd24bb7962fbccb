#include "ask/sources.h"
#include "base/log.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct folder {
    char path[64];
};

static int make_folder(void **state)
{
    struct folder *f = calloc(1, sizeof *f);
    snprintf(f->path, sizeof f->path, "/tmp/sonde-sources-XXXXXX");
    *state = f;
    log_setup(LOG_ERROR, "test");
    return mkdtemp(f->path) ? 0 : -1;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", f->path);
    int rc = system(command);
    free(f);
    return rc;
}

static const char *in(const struct folder *f, const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    return path;
}

// A recording with one series and `count` points.
static void record(const char *path, const char *metric, int count)
{
    struct store *s;
    struct error e = {0};
    uint32_t m, series;
    assert_int_equal(store_open(path, &(struct store_options){0}, &s, &e), 0);
    assert_int_equal(store_define_metric(s, &(struct store_metric){.name = str_of(metric)}, &m), 0);
    assert_int_equal(
        store_define_series(s, m, &(struct store_label){STR("host"), STR("a")}, 1, &series), 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(
            store_append(s, series, INT64_C(1356998400000000000) + i * INT64_C(1000000000), i), 0);
    assert_int_equal(store_close(s, &e), 0);
}

// A file with an incomplete header; `old`: unchanged for an hour.
static void write_unborn(const char *path, size_t size_bytes, bool old)
{
    static const char zeros[8192];
    FILE *f = fopen(path, "w");
    assert_int_equal(fwrite(zeros, 1, size_bytes, f), size_bytes);
    fclose(f);
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - 3600}};
    if (old)
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void write_junk(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static struct sources *list(const char *path)
{
    struct sources *s;
    struct error e = {0};
    assert_int_equal(sources_create(&path, 1, false, &s, &e), 0);
    return s;
}

static void test_folder(void **state)
{
    struct folder *f = *state;
    record(in(f, "b.sonde"), "x", 10);
    record(in(f, "a.sonde"), "y", 20);
    write_junk(in(f, "junk.sonde"), "no recording at all");
    write_unborn(in(f, "empty.sonde"), 0, true);
    write_junk(in(f, "notes.txt"), "");
    write_junk(in(f, ".hidden.sonde"), "");
    mkdir(in(f, "folder.sonde"), 0700);
    struct sources *s = list(f->path);
    struct arena arena = {0};
    struct sources_view view;
    assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
    assert_int_equal(view.count, 2);
    assert_non_null(strstr(source_path(view.files[0]), "/a.sonde"));
    assert_non_null(strstr(source_path(view.files[1]), "/b.sonde"));
    assert_int_equal(source_points(s, view.files[0], view.snapshots[0]), 20);
    assert_int_equal(source_points(s, view.files[1], view.snapshots[1]), 10);
    assert_int_equal(view.unreadable_count, 2);
    for (size_t i = 0; i < view.unreadable_count; i++) {
        assert_null(source_reader(view.unreadable[i]));
        assert_true(source_problem(view.unreadable[i])[0]);
    }
    sources_close(&view);
    sources_destroy(s);
    arena_free(&arena);
}

// A file that a starting agent has just made is neither served nor reported as unreadable.
static void test_folder_without_files(void **state)
{
    struct folder *f = *state;
    write_unborn(in(f, "a.sonde"), 0, false);
    write_unborn(in(f, "b.sonde"), 1024, false);
    write_unborn(in(f, "c.sonde"), 8192, false);
    struct sources *s = list(f->path);
    struct arena arena = {0};
    struct sources_view view;
    assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
    assert_int_equal(view.count, 0);
    assert_int_equal(view.unreadable_count, 0);
    sources_close(&view);
    write_unborn(in(f, "b.sonde"), 1024, true); // the agent that made it was killed
    unlink(in(f, "a.sonde"));
    record(in(f, "a.sonde"), "x", 3); // complete
    sources_look(s);
    assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
    assert_int_equal(view.count, 1);
    assert_int_equal(view.unreadable_count, 1);
    sources_close(&view);
    arena_free(&arena);
    sources_destroy(s);
}

// A request right after a file has appeared finds it, however short ago the folder was scanned: the
// first file of a job, and a further one.
static void test_a_new_file_is_found_at_once(void **state)
{
    struct folder *f = *state;
    struct arena arena = {0};
    struct sources_view view;
    struct sources *s = list(f->path);
    static const char *const names[] = {"a.sonde", "b.sonde", "c.sonde"};
    for (size_t i = 0; i < 3; i++) {
        record(in(f, names[i]), "x", 3);
        assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
        assert_int_equal(view.count, i + 1);
        sources_close(&view);
    }
    unlink(in(f, names[0]));
    assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
    assert_int_equal(view.count, 2);
    sources_close(&view);
    sources_destroy(s);
    arena_free(&arena);
}

static void test_one_file_named_twice_counts_once(void **state)
{
    struct folder *f = *state;
    record(in(f, "a.sonde"), "x", 1);
    char other[160], file[160];
    snprintf(other, sizeof other, "%s/../%s/", f->path, strrchr(f->path, '/') + 1);
    snprintf(file, sizeof file, "%s//a.sonde", f->path);
    const char *paths[] = {f->path, other, file};
    struct sources *s;
    assert_int_equal(sources_create(paths, 3, false, &s, NULL), 0);
    struct arena arena = {0};
    struct sources_view view;
    assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
    assert_int_equal(view.count, 1);
    sources_close(&view);
    sources_destroy(s);
    arena_free(&arena);
}

static void test_missing_path(void **state)
{
    struct folder *f = *state;
    const char *path = in(f, "nowhere.sonde");
    struct sources *s;
    struct error e = {0};
    assert_int_equal(sources_create(&path, 1, false, &s, &e), -ENOENT);
    assert_null(s);
    assert_non_null(strstr(e.text, "nowhere.sonde"));
}

// A view continues to read its open files, even if the list or the file's name changes.
static void test_file_goes_while_it_is_read(void **state)
{
    struct folder *f = *state;
    record(in(f, "a.sonde"), "x", 5);
    struct sources *s = list(f->path);
    struct arena arena = {0};
    struct sources_view view;
    assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
    assert_int_equal(unlink(in(f, "a.sonde")), 0);
    sources_look(s);
    struct sources_view after;
    assert_int_equal(sources_open(s, &arena, &after, NULL), 0);
    assert_int_equal(after.count, 0);
    sources_close(&after);
    int64_t first, last;
    assert_true(store_time_range(view.snapshots[0], &first, &last));
    assert_int_equal(last - first, INT64_C(4000000000));
    sources_close(&view);
    sources_destroy(s);
    arena_free(&arena);
}

static void test_files_come_and_are_replaced_and_repaired(void **state)
{
    struct folder *f = *state;
    struct sources *s = list(f->path);
    struct arena arena = {0};
    struct sources_view view;
    write_junk(in(f, "late.sonde"), "not yet");
    record(in(f, "a.sonde"), "x", 5);
    sources_look(s);
    assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
    assert_int_equal(view.count, 1);
    assert_int_equal(view.unreadable_count, 1);
    sources_close(&view);
    char fresh[128];
    snprintf(fresh, sizeof fresh, "%s/fresh", f->path);
    record(fresh, "x", 7);
    assert_int_equal(rename(fresh, in(f, "a.sonde")), 0);
    assert_int_equal(unlink(in(f, "late.sonde")), 0);
    record(in(f, "late.sonde"), "y", 9);
    sources_look(s);
    assert_int_equal(sources_open(s, &arena, &view, NULL), 0);
    assert_int_equal(view.count, 2);
    assert_int_equal(view.unreadable_count, 0);
    assert_int_equal(source_points(s, view.files[0], view.snapshots[0]), 7);
    assert_int_equal(source_points(s, view.files[1], view.snapshots[1]), 9);
    sources_close(&view);
    sources_destroy(s);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folder, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_folder_without_files, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_new_file_is_found_at_once, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_one_file_named_twice_counts_once, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_missing_path, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_file_goes_while_it_is_read, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_files_come_and_are_replaced_and_repaired, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
