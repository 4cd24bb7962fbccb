#include "launch/channel.h"

#include "base/forked.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

void channel_none(struct channel *c)
{
    *c = (struct channel){
        .to = -1, .from = -1, .words = -1, .pending = {.limit = CHANNEL_PENDING_MAX}};
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

// Runs in the new process: only calls that are safe between fork and exec.
static _Noreturn void become(char *const argv[], const int fds[3], int death_signal, pid_t parent)
{
    forked_begin(parent, death_signal);
    setsid();
    for (int i = 0; i < 3; i++)
        dup2(fds[i], i); // all three are above 2, see channel_start
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

// Makes a pipe whose ends are above 2, even if the launcher was started with closed standard
// streams.
static int make_pipe(int ends[2])
{
    int made[2];
    ends[0] = ends[1] = -1;
    if (pipe2(made, O_CLOEXEC) < 0)
        return -errno;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(made[i], F_DUPFD_CLOEXEC, 3);
        close(made[i]);
    }
    return ends[0] < 0 || ends[1] < 0 ? -EMFILE : 0;
}

int channel_start(struct channel *c, char *const argv[], int death_signal, struct error *e)
{
    channel_none(c);
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, code = 0;
    for (int i = 0; i < 3 && code == 0; i++)
        code = make_pipe(pipes[i]);
    pid_t self = getpid(), pid = -1;
    if (code == 0) {
        pid = fork();
        if (pid == 0)
            become(argv, (const int[3]){pipes[0][0], pipes[1][1], pipes[2][1]}, death_signal, self);
        code = pid < 0 ? -errno : 0;
    }
    close_one(&pipes[0][0]);
    close_one(&pipes[1][1]);
    close_one(&pipes[2][1]);
    if (code < 0) {
        close_one(&pipes[0][1]);
        close_one(&pipes[1][0]);
        close_one(&pipes[2][0]);
        return error_set(e, code, "cannot start %s: %s", argv[0], strerror(-code));
    }
    c->pid = pid;
    c->to = pipes[0][1];
    c->from = pipes[1][0];
    c->words = pipes[2][0];
    const int ours[] = {c->to, c->from, c->words};
    for (int i = 0; i < 3; i++)
        fcntl(ours[i], F_SETFL, O_NONBLOCK);
    return 0;
}

void channel_flush(struct channel *c)
{
    while (c->to >= 0 && c->pending.size > 0) {
        ssize_t n = write(c->to, c->pending.data, c->pending.size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) { // the process has stopped reading; its exit will tell the reason
            channel_finish(c);
            return;
        }
        memmove(c->pending.data, c->pending.data + n, c->pending.size - (size_t)n);
        c->pending.size -= (size_t)n;
    }
    if (c->pending.size == 0)
        buf_free(&c->pending);
    c->pending.limit = CHANNEL_PENDING_MAX;
}

void channel_add(struct channel *c, struct str text)
{
    if (c->to >= 0)
        buf_add_str(&c->pending, text);
}

void channel_finish(struct channel *c)
{
    buf_free(&c->pending);
    close_one(&c->to);
}

static void give(struct channel_line *line, void (*take)(void *user, const char *line), void *user)
{
    while (line->size > 0 &&
           line->text[line->size - 1] == '\r') // ssh ends lines like a terminal, with \r\n
        line->size--;
    line->text[line->size] = 0;
    line->size = 0;
    take(user, line->text);
}

void channel_read(struct channel *c, bool words, void (*take)(void *user, const char *line),
                  void *user)
{
    int *fd = words ? &c->words : &c->from;
    struct channel_line *line = words ? &c->word : &c->answer;
    char piece[4096];
    ssize_t n = 0;
    while (*fd >= 0 && ((n = read(*fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR))) {
        for (ssize_t i = 0; i < n; i++) {
            if (piece[i] == '\n')
                give(line, take, user);
            else if (line->size < CHANNEL_LINE_MAX)
                line->text[line->size++] = piece[i];
        }
    }
    if (n < 0 && errno == EAGAIN)
        return;
    if (line->size > 0)
        give(line, take, user);
    close_one(fd);
}

void channel_close(struct channel *c)
{
    channel_finish(c);
    close_one(&c->from);
    close_one(&c->words);
    channel_none(c);
}
