#include "launch/folder.h"
#include "unit/test.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/sonde-folder-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(root, NULL);
}

static const char *path_of(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static void private_folders(void **state)
{
    (void)state;
    struct error e;
    struct stat info;
    int fd = folder_make_private(path_of("a/b"), &e);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(stat(path_of("a/b"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    fd = folder_make_private(path_of("a/b"), &e); // again
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(folder_open_private(path_of("none"), &e), -ENOENT);
    chmod(path_of("a/b"), 0710);
    assert_int_equal(folder_open_private(path_of("a/b"), &e), -EPERM);
    assert_non_null(strstr(e.text, "mode 0710"));
    assert_int_equal(symlink(path_of("a"), path_of("link")), 0);
    assert_int_equal(folder_open_private(path_of("link"), &e), -ELOOP);
}

static void files_are_written_and_read(void **state)
{
    (void)state;
    struct error e;
    struct buf text;
    struct stat info;
    assert_int_equal(folder_write(root, "f", STR("one"), &e), 0);
    assert_int_equal(folder_write(root, "f", STR("two, longer"), &e), 0);
    assert_int_equal(folder_read(path_of("f"), 100, &text, &e), 0);
    assert_str_equal(buf_str(&text), "two, longer");
    buf_free(&text);
    stat(path_of("f"), &info);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(folder_read(path_of("f"), 5, &text, &e), -EFBIG);
    assert_int_equal(folder_read(path_of("none"), 5, &text, &e), -ENOENT);
    assert_int_equal(folder_write(path_of("none"), "f", STR("x"), &e), -ENOENT);
}

static void removal_does_not_follow_links(void **state)
{
    (void)state;
    struct error e;
    assert_int_equal(folder_make_all(path_of("doomed/x/y"), &e), 0);
    assert_int_equal(folder_make_all(path_of("spared"), &e), 0);
    assert_int_equal(folder_write(path_of("spared"), "f", STR("x"), &e), 0);
    assert_int_equal(folder_write(path_of("doomed/x"), "f", STR("x"), &e), 0);
    assert_int_equal(symlink(path_of("spared"), path_of("doomed/x/link")), 0);
    assert_int_equal(folder_remove(path_of("doomed"), &e), 0);
    assert_int_equal(access(path_of("doomed"), F_OK), -1);
    assert_int_equal(access(path_of("spared/f"), F_OK), 0);
    assert_int_equal(folder_remove(path_of("doomed"), &e), 0); // already removed
}

// Runs in a mount namespace of its own, so that the machine does not see the mount.
static int remove_around_a_mount(void)
{
    struct error e;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(path_of("bound"), path_of("around/x/mounted"), NULL, MS_BIND, NULL) < 0)
        return 77;
    bool kept = folder_remove(path_of("around"), &e) == -EXDEV && strstr(e.text, "around") &&
                strstr(e.text, "mounted");
    return kept && access(path_of("bound/f"), F_OK) == 0 && access(path_of("around/x/f"), F_OK) < 0
               ? 0
               : 1;
}

// Also a mount of the same file system, which has the same device number.
static void removal_does_not_follow_mounts(void **state)
{
    (void)state;
    struct error e;
    assert_int_equal(folder_make_all(path_of("bound"), &e), 0);
    assert_int_equal(folder_make_all(path_of("around/x/mounted"), &e), 0);
    assert_int_equal(folder_write(path_of("bound"), "f", STR("x"), &e), 0);
    assert_int_equal(folder_write(path_of("around/x"), "f", STR("x"), &e), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(remove_around_a_mount());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); // mounting needs root
    assert_int_equal(status, 0);
}

static void removal_stops_at_its_depth_limit(void **state)
{
    (void)state;
    char deep[256];
    struct error e;
    int n = snprintf(deep, sizeof deep, "%s/deep", root);
    for (int i = 0; i <= FOLDER_DEPTH_MAX; i++)
        n += snprintf(deep + n, sizeof deep - (size_t)n, "/d");
    assert_int_equal(folder_make_all(deep, &e), 0);
    assert_int_equal(folder_remove(path_of("deep"), &e), -ELOOP);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(folder_remove(path_of("deep"), &e), 0);
}

static void folders_that_cannot_be_made_are_named(void **state)
{
    (void)state;
    struct error e;
    assert_int_equal(folder_write(root, "file", STR("x"), &e), 0);
    assert_int_equal(folder_make_all(path_of("file"), &e), -ENOTDIR);
    assert_true(folder_make_all(path_of("file/x"), &e) < 0);
    assert_non_null(strstr(e.text, "/file"));
    assert_true(folder_check_writable(path_of("none"), &e) < 0);
    assert_int_equal(folder_check_writable(root, &e), 0);
    char base[FOLDER_PATH_MAX];
    assert_int_equal(folder_base_path(path_of("none"), base, &e), -ENOENT);
    assert_int_equal(folder_base_path("/", base, &e), 0);
    assert_memory_equal(base, "/sonde-", 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(private_folders),
        cmocka_unit_test(files_are_written_and_read),
        cmocka_unit_test(removal_does_not_follow_links),
        cmocka_unit_test(removal_does_not_follow_mounts),
        cmocka_unit_test(removal_stops_at_its_depth_limit),
        cmocka_unit_test(folders_that_cannot_be_made_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
