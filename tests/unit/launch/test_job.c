#include "launch/job.h"
#include "launch/runs.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char parent[64], base[FOLDER_PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(parent, sizeof parent, "/tmp/sonde-job-XXXXXX");
    return mkdtemp(parent) && folder_base_path(parent, base, NULL) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(parent, NULL);
}

static void ids(void **state)
{
    (void)state;
    char id[JOB_ID_MAX + 1], long_name[200];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    unsetenv("SONDE_JOB");
    unsetenv("SLURM_JOB_ID");
    unsetenv("PBS_JOBID");
    setenv("TZ", "UTC", 1);
    job_choose_id(1700000000 * INT64_C(1000000000), id);
    assert_memory_equal(id, "20231114-221320-", 16);
    setenv("PBS_JOBID", "7.server/x", 1);
    job_choose_id(0, id);
    assert_string_equal(id, "7.server_x");
    setenv("SLURM_JOB_ID", "..", 1);
    job_choose_id(0, id);
    assert_string_equal(id, "_.");
    setenv("SONDE_JOB", long_name, 1);
    job_choose_id(0, id);
    assert_int_equal(strlen(id), JOB_ID_MAX);
    unsetenv("SONDE_JOB");
    unsetenv("SLURM_JOB_ID");
    unsetenv("PBS_JOBID");
}

static void commands_are_quoted(void **state)
{
    (void)state;
    char *const words[] = {"sh", "-c", "echo 'a b'", "", "plain/x=1", NULL};
    char *text = job_command_text(words);
    assert_string_equal(text, "sh -c 'echo '\\''a b'\\''' '' plain/x=1");
    free(text);
    static char huge[2 * JOB_COMMAND_MAX];
    memset(huge, 'x', sizeof huge - 1);
    char *const long_words[] = {huge, NULL};
    text = job_command_text(long_words);
    assert_int_equal(strlen(text), JOB_COMMAND_MAX + strlen("…"));
    free(text);
}

static void written_values_are_read_back(void **state)
{
    (void)state;
    struct job j = {.id = "17",
                    .host = "n1",
                    .url = "http://127.0.0.1:4242",
                    .record = "/r/17",
                    .start_ns = 5,
                    .end_ns = 7,
                    .pid = 3,
                    .level = 2,
                    .rate_s = 0.25,
                    .exit_code = 3};
    struct job back;
    struct error e;
    char path[FOLDER_PATH_MAX + 16];
    j.command = strdup("a \"b\" \xff");
    assert_int_equal(job_write(&j, parent, JOB_RUN_FILE, &e), 0);
    snprintf(path, sizeof path, "%s/" JOB_RUN_FILE, parent);
    assert_int_equal(job_read(path, &back, &e), 0);
    assert_string_equal(back.id, "17");
    assert_string_equal(back.host, "n1");
    assert_string_equal(back.url, j.url);
    assert_string_equal(back.record, j.record);
    assert_string_equal(back.command, "a \"b\" \xef\xbf\xbd");
    assert_true(back.start_ns == 5 && back.end_ns == 7 && back.exit_code == 3 && back.level == 2 &&
                back.pid == 3 && back.rate_s == 0.25);
    job_free(&back);
    job_free(&j);
}

static void strange_texts_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "{}",
                                        "{\"format\": 1}",
                                        "{\"format\": \"sonde run 2\"}",
                                        "null",
                                        "\"sonde run 1\""};
    struct job j;
    char path[FOLDER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/x.json", parent);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(folder_write(parent, "x.json", str_of(texts[i]), NULL), 0);
        assert_int_equal(job_read(path, &j, NULL), -EBADMSG);
        job_free(&j);
    }
    // Fields of the wrong type count as absent.
    assert_int_equal(
        folder_write(
            parent, "x.json",
            STR("{\"format\": \"sonde run 1\", \"job\": 5, \"start_ns\": \"x\", \"command\": []}"),
            NULL),
        0);
    assert_int_equal(job_read(path, &j, NULL), 0);
    assert_string_equal(j.id, "");
    assert_string_equal(j.command, "");
    assert_true(j.start_ns == 0);
    job_free(&j);
}

static void jobs_live_as_long_as_their_lock(void **state)
{
    (void)state;
    struct job first = {.id = "17", .start_ns = 1}, second = {.id = "17", .start_ns = 2}, *list;
    struct error e;
    size_t count;
    int locks[2];
    assert_int_equal(job_list(base, false, &list, &count, &e), 0); // the base does not exist yet
    assert_int_equal(count, 0);
    int fd = folder_make_private(base, &e);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(job_make_folder(&first, base, NULL, &locks[0], &e), 0);
    assert_int_equal(job_make_folder(&second, base, NULL, &locks[1], &e), 0);
    assert_string_equal(second.id, "17-2");
    // their job.json does not exist yet
    assert_int_equal(job_list(base, false, &list, &count, &e), 0);
    assert_int_equal(count, 0);
    assert_int_equal(job_write(&first, first.folder, JOB_FILE, &e), 0);
    assert_int_equal(job_write(&second, second.folder, JOB_FILE, &e), 0);
    assert_int_equal(job_list(base, false, &list, &count, &e), 0);
    assert_int_equal(count, 2);
    assert_string_equal(list[0].id, "17-2"); // newest first
    assert_string_equal(list[1].folder, first.folder);
    job_list_free(list, count);
    assert_int_equal(job_claim(first.folder), -EBUSY);

    close(locks[1]); // its launcher has ended
    assert_int_equal(job_list(base, false, &list, &count, &e), 0);
    assert_int_equal(count, 1);
    assert_string_equal(list[0].id, "17");
    job_list_free(list, count);
    assert_int_equal(job_list(base, true, &list, &count, &e), 0);
    assert_int_equal(count, 1);
    assert_string_equal(list[0].id, "17-2");
    job_list_free(list, count);
    int claim = job_claim(second.folder);
    assert_true(claim >= 0);
    // another process already cleans up
    assert_int_equal(job_list(base, true, &list, &count, &e), 0);
    assert_int_equal(count, 0);
    close(claim);
    close(locks[0]);
}

// Two jobs that started in the same nanosecond are listed in natural order, whatever the order of
// the folder.
static void equal_starts_are_in_natural_order(void **state)
{
    (void)state;
    static const char *const order[] = {"s-1", "s-2", "s-9", "s-10", "s-11", "s-100", "older"};
    enum { COUNT = sizeof order / sizeof *order };
    struct error e;
    struct job jobs[COUNT], *list;
    struct runs_entry *runs;
    int locks[COUNT];
    size_t count;
    char folder[128];
    int fd = folder_make_private(base, &e);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < COUNT; i++) {
        struct job *j = &jobs[(i * 3) % COUNT]; // made in another order
        *j = (struct job){.start_ns = (i * 3) % COUNT == COUNT - 1 ? 10 : 20};
        snprintf(j->id, sizeof j->id, "%s", order[(i * 3) % COUNT]);
        assert_int_equal(job_make_folder(j, base, NULL, &locks[i], &e), 0);
        assert_int_equal(job_write(j, j->folder, JOB_FILE, &e), 0);
        snprintf(folder, sizeof folder, "%s/equal/%s", parent, j->id);
        assert_int_equal(folder_make_all(folder, &e), 0);
        assert_int_equal(job_write(j, folder, JOB_RUN_FILE, &e), 0);
    }
    assert_int_equal(job_list(base, false, &list, &count, &e), 0);
    assert_int_equal(count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(list[i].id, order[i]);
    job_list_free(list, count);
    snprintf(folder, sizeof folder, "%s/equal", parent);
    assert_int_equal(runs_list(folder, &runs, &count, &e), 0);
    assert_int_equal(count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(strrchr(runs[i].path, '/') + 1, order[i]);
    free(runs);
    for (size_t i = 0; i < COUNT; i++) {
        close(locks[i]);
        assert_int_equal(folder_remove(jobs[i].folder, &e), 0);
    }
}

static void names_that_are_taken_elsewhere(void **state)
{
    (void)state;
    struct job j = {.id = "18"};
    struct error e;
    char taken[128];
    int lock;
    snprintf(taken, sizeof taken, "%s/runs", parent);
    snprintf(j.folder, sizeof j.folder, "%s/18", taken);
    assert_int_equal(folder_make_all(j.folder, &e), 0);
    assert_int_equal(job_make_folder(&j, base, taken, &lock, &e), 0);
    assert_string_equal(j.id, "18-2");
    close(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids),
        cmocka_unit_test(commands_are_quoted),
        cmocka_unit_test(written_values_are_read_back),
        cmocka_unit_test(strange_texts_are_refused),
        cmocka_unit_test(jobs_live_as_long_as_their_lock),
        cmocka_unit_test(equal_starts_are_in_natural_order),
        cmocka_unit_test(names_that_are_taken_elsewhere),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
