// dump_send.c - one ssh per file; its standard error is the reason of a failure.
#include "faces/native/dump_send.h"

#include "base/escape.h"
#include "base/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 100, // between two checks of the watch
    WORDS_MAX = 300,
};

extern char **environ;

struct sender {
    pid_t pid;
    int words; // its standard error
    char last[WORDS_MAX + 1];
    size_t size;
    bool line_over;
};

static int start(struct sender *s, const char *node, const char *command, int in, struct error *e)
{
    int words[2];
    if (pipe2(words, O_CLOEXEC) != 0)
        return error_set(e, -errno, "cannot start ssh: %s", strerror(errno));
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, words[1], STDERR_FILENO);
    posix_spawnattr_setflags(&how,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    static const char *const options[] = {"-oClearAllForwardings=yes", NULL};
    struct ssh_words ssh;
    ssh_words(&ssh, options, 4, node, command);
    int failed = posix_spawnp(&s->pid, "ssh", &files, &how, ssh.argv, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    close(words[1]);
    s->words = words[0];
    if (failed)
        close(words[0]);
    return failed ? error_set(e, -failed, "cannot start ssh: %s", strerror(failed)) : 0;
}

// Reads and keeps the last line. False: end of file.
static bool read_words(struct sender *s)
{
    char piece[512];
    ssize_t n = read(s->words, piece, sizeof piece);
    for (ssize_t i = 0; i < n; i++) {
        if (piece[i] == '\n' || piece[i] == '\r') {
            s->line_over = true;
            continue;
        }
        if (s->line_over)
            s->size = 0;
        s->line_over = false;
        if (s->size < WORDS_MAX)
            s->last[s->size++] = piece[i];
    }
    s->last[s->size] = 0;
    return n > 0 || (n < 0 && errno == EINTR);
}

// Runs a script with sh there, whatever the user's login shell is.
static int run(const char *node, struct buf *script, int in, const struct work_watch *watch,
               struct error *e)
{
    struct sender s = {0};
    struct buf command = {0};
    buf_add_str(&command, STR("exec /bin/sh -c "));
    escape_for_shell(&command, buf_str(script));
    int status = script->failed || command.failed ? error_set(e, -ENOMEM, "no memory for a dump")
                                                  : start(&s, node, buf_cstr(&command), in, e);
    buf_free(script);
    buf_free(&command);
    if (status)
        return status;
    struct pollfd fd = {.fd = s.words, .events = POLLIN};
    do
        status = watch ? watch->look(watch->user, e) : 0;
    while (status == 0 && (poll(&fd, 1, LOOK_MS) <= 0 || read_words(&s)));
    if (status)
        kill(s.pid, SIGKILL);
    close(s.words);
    int how = 0;
    while (waitpid(s.pid, &how, 0) < 0 && errno == EINTR)
        ;
    if (status || (WIFEXITED(how) && WEXITSTATUS(how) == 0))
        return status;
    return error_set(e, -EIO, "%s: %s", node, s.size ? s.last : "ssh has ended without a word");
}

int dump_send_prepare(const char *node, const char *folder, const struct work_watch *watch,
                      struct error *e)
{
    struct buf script = {0};
    buf_add_str(&script, STR("d="));
    escape_for_shell(&script, str_of(folder));
    buf_add_str(&script, STR("; test -d \"$d\" || mkdir -m 700 \"$d\""));
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0) {
        buf_free(&script);
        return error_set(e, -errno, "cannot open /dev/null: %s", strerror(errno));
    }
    int status = run(node, &script, null, watch, e);
    close(null);
    return status;
}

int dump_send_file(const char *node, const char *folder, const char *name, const char *path,
                   const struct work_watch *watch, struct error *e)
{
    struct stat info;
    int in = open(path, O_RDONLY | O_CLOEXEC);
    if (in < 0 || fstat(in, &info) != 0) {
        int code = errno;
        if (in >= 0)
            close(in);
        return error_set(e, -code, "cannot read %s: %s", path, strerror(code));
    }
    // On the other side a broken connection looks like the end of the file, so the script checks
    // the size.
    struct buf script = {0};
    buf_add_str(&script, STR("umask 077; t="));
    escape_for_shell(&script, str_of(folder));
    buf_add_str(&script, STR("; n="));
    escape_for_shell(&script, str_of(name));
    buf_printf(&script,
               "; p=$(mktemp \"$t/.$n.XXXXXXXXXX\") || exit 1; trap 'rm -f \"$p\"' EXIT; trap "
               "'exit 1' HUP INT TERM; cat > "
               "\"$p\" || exit 1; "
               "test $(wc -c < \"$p\") -eq %lld || { echo 'not all of it has come' >&2; exit 1; }; "
               "mv -f \"$p\" \"$t/$n\"",
               (long long)info.st_size);
    int status = run(node, &script, in, watch, e);
    close(in);
    return status;
}
