// A killed launcher, or a node whose part was killed, leaves files, which the next run cleans up.
#include "launch/runs.h"
#include "launch/sweep.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char parent[64], base[FOLDER_PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(parent, sizeof parent, "/tmp/sonde-sweep-XXXXXX");
    return mkdtemp(parent) && folder_base_path(parent, base, NULL) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(parent, NULL);
}

// Makes the run folder of a job that was killed on this host, with a recording.
static struct job killed(const char *id, const char *host)
{
    struct job j = {.start_ns = 1, .exit_code = -1};
    int lock_fd;
    char file[JOB_HOST_MAX + 16];
    snprintf(j.host, sizeof j.host, "%s", host);
    snprintf(j.record, sizeof j.record, "%s/record", parent);
    snprintf(file, sizeof file, "%s.sonde", host);
    setenv("SONDE_JOB", id, 1);
    job_choose_id(0, j.id);
    int fd = folder_make_private(base, NULL);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(job_make_folder(&j, base, NULL, &lock_fd, NULL), 0);
    assert_int_equal(job_write(&j, j.folder, JOB_FILE, NULL), 0);
    assert_int_equal(folder_write(j.folder, file, STR("points"), NULL), 0);
    close(lock_fd);
    return j;
}

// Makes the recording's folder with the files of the launcher, or of another job.
static void conclude(const char *id)
{
    char path[FOLDER_PATH_MAX];
    struct job j = {.start_ns = 1, .end_ns = 2};
    snprintf(path, sizeof path, "%s/record", parent);
    snprintf(j.id, sizeof j.id, "%s", id);
    strcpy(j.host, "first");
    assert_int_equal(folder_make_all(path, NULL), 0);
    assert_int_equal(job_write(&j, path, JOB_RUN_FILE, NULL), 0);
}

static bool is_there(const char *folder, const char *file)
{
    char path[FOLDER_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return access(path, F_OK) == 0;
}

static struct job told_of(const struct job *j)
{
    char path[FOLDER_PATH_MAX + 64];
    struct job run;
    snprintf(path, sizeof path, "%s/" JOB_RUN_FILE, j->record);
    assert_int_equal(job_read(path, &run, NULL), 0);
    return run;
}

static void a_recording_is_kept(void **state)
{
    (void)state;
    struct job j = killed("7", "n2");
    sweep_dead_jobs(base);
    assert_false(is_there(j.folder, ""));
    assert_true(is_there(j.record, "n2.sonde"));
    struct job run = told_of(&j);
    assert_string_equal(run.host, "n2");
    assert_int_equal(run.exit_code, -1);
    job_free(&run);
}

static void lines_of_the_launcher_stay(void **state)
{
    (void)state;
    struct job j = killed("7", "n2");
    conclude("7");
    sweep_dead_jobs(base);
    assert_false(is_there(j.folder, ""));
    assert_true(is_there(j.record, "n2.sonde"));
    struct job run = told_of(&j);
    assert_string_equal(run.host, "first");
    assert_int_equal(run.exit_code, 0);
    job_free(&run);
}

static void another_jobs_recording_is_left_alone(void **state)
{
    (void)state;
    struct job j = killed("7", "n2");
    conclude("8");
    sweep_dead_jobs(base);
    assert_true(is_there(j.folder, "n2.sonde"));
    assert_false(is_there(j.record, "n2.sonde"));
    struct job run = told_of(&j);
    assert_string_equal(run.id, "8");
    job_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_recording_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_of_the_launcher_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_jobs_recording_is_left_alone, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
