// A file is written completely or not at all: with several writers, on a full disk, without
// permission, and with a planted link.
#include "base/atomic_file.h"

#include "base/full_io.h"
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 1 << 20, CANNOT_BE_DONE_HERE = 77 };

static char root[] = "/tmp/sonde-atomic-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(root) ? chdir(root) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    // rmdir fails unless each test has left the folder empty, without drafts
    return chdir("/") != 0 || rmdir(root) != 0;
}

// Returns the number of files in the folder, including hidden ones.
static int files_in(const char *folder)
{
    int count = -2; // "." and ".."
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        count++;
    closedir(d);
    return count;
}

static bool holds(const char *path, struct str text)
{
    struct buf found = {.limit = LARGE + 1};
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool same = fd >= 0 && full_read(fd, &found) == 0 && str_eq(buf_str(&found), text);
    if (fd >= 0)
        close(fd);
    buf_free(&found);
    return same;
}

static struct str large_text(void)
{
    static char text[LARGE];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 26);
    return (struct str){text, sizeof text};
}

static void a_file_is_replaced_as_a_whole(void **state)
{
    (void)state;
    struct stat info;
    mode_t mask = umask(0);
    assert_int_equal(atomic_file_write("f", STR("one"), ATOMIC_FILE_DURABLE), 0);
    int old = open("f", O_RDONLY | O_CLOEXEC);
    assert_int_equal(chmod("f", 0644), 0);
    assert_int_equal(atomic_file_write("f", large_text(), 0), 0);
    umask(mask);
    assert_true(holds("f", large_text()));
    assert_int_equal(stat("f", &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(info.st_uid, geteuid());
    struct buf text = {.limit = LARGE}; // enough that a reader of the old file can read all of it
    assert_int_equal(full_read(old, &text), 0);
    assert_str_equal(buf_str(&text), "one");
    buf_free(&text);
    close(old);
    assert_int_equal(files_in("."), 1);
    unlink("f");
}

static void a_new_file_takes_no_name_that_is_taken(void **state)
{
    (void)state;
    assert_int_equal(atomic_file_write("f", STR("one"), ATOMIC_FILE_NEW), 0);
    assert_int_equal(atomic_file_write("f", STR("two"), ATOMIC_FILE_NEW), -EEXIST);
    assert_true(holds("f", STR("one")));
    unlink("f");
}

static void a_caller_that_fails_leaves_the_old_file(void **state)
{
    (void)state;
    struct atomic_file f;
    assert_int_equal(atomic_file_write("f", STR("one"), 0), 0);
    assert_int_equal(atomic_file_begin(&f, "f"), 0);
    assert_int_equal(full_write(f.fd, STR("tw"), 0), 0);
    assert_true(holds("f", STR("one"))); // a reader never sees half of it
    assert_int_equal(atomic_file_end(&f, -EIO, 0), -EIO);
    assert_true(holds("f", STR("one")));
    assert_int_equal(files_in("."), 1);
    unlink("f");
}

// Runs `child` in a process of its own and returns its result.
static int in_child(int (*child)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int write_large_over_one(void)
{
    return -atomic_file_write("f", large_text(), 0);
}

// A resource limit that any user can set stops the write in the middle.
static int without_room(void)
{
    struct rlimit small = {.rlim_cur = LARGE / 2, .rlim_max = LARGE / 2};
    signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &small) == 0 ? write_large_over_one() : CANNOT_BE_DONE_HERE;
}

// Mounts a file system of LARGE / 2 bytes on the folder, for this process only.
static int with_little_disk(unsigned long flags)
{
    char size[32];
    snprintf(size, sizeof size, "size=%d", LARGE / 2);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", root, "tmpfs", 0, size) < 0 || chdir(root) < 0 ||
        atomic_file_write("f", STR("one"), 0) != 0 ||
        (flags && mount("none", root, NULL, MS_REMOUNT | flags, NULL) < 0))
        return CANNOT_BE_DONE_HERE;
    int code = write_large_over_one();
    return holds("f", STR("one")) && files_in(".") == 1 ? code : -1;
}

static int on_a_full_disk(void)
{
    return with_little_disk(0);
}

static int on_a_read_only_disk(void)
{
    return with_little_disk(MS_RDONLY);
}

static int without_permission(void)
{
    if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        return CANNOT_BE_DONE_HERE;
    return write_large_over_one();
}

static void no_space(void **state)
{
    (void)state;
    assert_int_equal(atomic_file_write("f", STR("one"), 0), 0);
    assert_int_equal(in_child(without_room), EFBIG);
    assert_true(holds("f", STR("one")));
    assert_int_equal(files_in("."), 1);
    unlink("f");
}

static void a_folder_that_cannot_be_written(void **state)
{
    (void)state;
    assert_int_equal(atomic_file_write("f", STR("one"), 0), 0);
    assert_int_equal(chmod(root, 0555), 0);
    assert_int_equal(in_child(without_permission), EACCES);
    assert_int_equal(chmod(root, 0700), 0);
    assert_true(holds("f", STR("one")));
    assert_int_equal(files_in("."), 1);
    unlink("f");
    assert_int_equal(atomic_file_write("none/f", STR("one"), 0), -ENOENT);
    assert_int_equal(mkdir("sub", 0700), 0);
    assert_int_equal(atomic_file_write("sub/f", STR("one"), 0), 0);
    assert_true(holds("sub/f", STR("one")));
    assert_int_equal(files_in("sub"), 1);
    unlink("sub/f");
    assert_int_equal(rmdir("sub"), 0);
}

static void disks_that_are_full_or_read_only(void **state)
{
    (void)state;
    int full = in_child(on_a_full_disk), read_only = in_child(on_a_read_only_disk);
    if (full == CANNOT_BE_DONE_HERE)
        skip(); // mounting needs root
    assert_int_equal(full, ENOSPC);
    assert_int_equal(read_only, EROFS);
}

// One link leads to a secret file, one to a missing file.
static void planted_links_are_not_followed(void **state)
{
    (void)state;
    static const char *const targets[] = {"victim", "none"};
    assert_int_equal(atomic_file_write("victim", STR("spared"), 0), 0);
    for (size_t i = 0; i < 2; i++) {
        struct stat info;
        assert_int_equal(symlink(targets[i], "f"), 0);
        assert_int_equal(atomic_file_write("f", STR("secret"), ATOMIC_FILE_NEW), -EEXIST);
        assert_int_equal(lstat("f", &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        assert_int_equal(atomic_file_write("f", STR("secret"), 0), 0);
        assert_true(holds("f", STR("secret"))); // no longer a link
        assert_true(holds("victim", STR("spared")));
        assert_int_equal(files_in("."), 2);
        unlink("f");
    }
    unlink("victim");
}

static void names_that_cannot_be_files(void **state)
{
    (void)state;
    char long_path[PATH_MAX + 1], long_name[300];
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    for (size_t left = 0; left < 12; left++)
        assert_int_equal(atomic_file_write(long_path + left, STR("x"), 0), -ENAMETOOLONG);
    assert_int_equal(atomic_file_write(long_name, STR("x"), 0), -ENAMETOOLONG);
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(atomic_file_write("folder", STR("x"), 0), -EISDIR);
    assert_int_equal(atomic_file_write("folder", STR("x"), ATOMIC_FILE_NEW), -EEXIST);
    assert_int_equal(files_in("."), 1);
    assert_int_equal(rmdir("folder"), 0);
}

enum { WRITERS = 4, TIMES = 500 };

// Each writer writes its own bytes, of its own length. Returns the number of times that it created
// the file.
static int write_often(int writer, unsigned flags)
{
    char text[8192];
    int made = 0;
    memset(text, 'a' + writer, sizeof text);
    for (int i = 0; i < TIMES; i++) {
        int status =
            atomic_file_write("f", (struct str){text, sizeof text - (size_t)writer}, flags);
        if (status < 0 && status != -EEXIST)
            return TIMES;
        made += status == 0;
    }
    return made;
}

// Nodes that share a file system write one file at the same time.
static int several_write(unsigned flags)
{
    pid_t writers[WRITERS];
    int made = 0;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        assert_true(writers[i] >= 0);
        if (writers[i] == 0)
            _exit(write_often(i, flags) != (flags ? 0 : TIMES));
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_true(WIFEXITED(status));
        made += WEXITSTATUS(status);
    }
    bool whole = false;
    for (int i = 0; i < WRITERS; i++) {
        char text[8192];
        memset(text, 'a' + i, sizeof text);
        whole |= holds("f", (struct str){text, sizeof text - (size_t)i});
    }
    assert_true(whole);
    assert_int_equal(files_in("."), 1);
    unlink("f");
    return made;
}

static void several_write_one_file(void **state)
{
    (void)state;
    assert_int_equal(several_write(0), 0);               // no writer failed
    assert_int_equal(several_write(ATOMIC_FILE_NEW), 1); // one writer has created it
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_as_a_whole),
        cmocka_unit_test(a_new_file_takes_no_name_that_is_taken),
        cmocka_unit_test(a_caller_that_fails_leaves_the_old_file),
        cmocka_unit_test(no_space),
        cmocka_unit_test(a_folder_that_cannot_be_written),
        cmocka_unit_test(disks_that_are_full_or_read_only),
        cmocka_unit_test(planted_links_are_not_followed),
        cmocka_unit_test(names_that_cannot_be_files),
        cmocka_unit_test(several_write_one_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
