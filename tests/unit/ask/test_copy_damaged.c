// Existing copies that are damaged, forged, replaced or written meanwhile: the new copy equals the
// node's file, whatever the existing one contains.
#include "ask/copy_sums.h"
#include "two_files.h"
#include "unit/wire/world.h"

#include <fcntl.h>
#include <sys/stat.h>

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

static void damaged_copies_are_repaired(void **state)
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
static void a_copy_that_changes_meanwhile_is_transferred_whole(void **state)
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
static void a_copy_that_is_damaged_repeatedly_fails(void **state)
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
        // The last write may have come after the new file got its name.
        copy_over(w);
    }
}

// Two processes copy into one folder: the second one fails with a message, and does not touch the
// first one's draft.
static void a_file_that_another_process_writes_stays(void **state)
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
    assert_non_null(strstr(f.problem, "another process is writing"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damaged_copies_are_repaired, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_forged_copy_is_replaced, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_copy_that_changes_meanwhile_is_transferred_whole, set_up,
                                        world_end),
        cmocka_unit_test_setup_teardown(a_copy_that_is_damaged_repeatedly_fails, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_file_that_another_process_writes_stays, set_up,
                                        world_end),
        cmocka_unit_test_setup_teardown(a_planted_link_is_not_followed, set_up, world_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
