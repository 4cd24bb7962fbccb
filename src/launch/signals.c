#include "launch/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

static const int passed_on[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

int signals_open(struct signals *s, struct error *e)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        sigaddset(&set, passed_on[i]);
    sigaddset(&set, SIGCHLD);
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0)
        return error_set(e, -errno, "cannot take signals: %s", strerror(errno));
    // Neither a closed pipe nor a file at its limit (RLIMIT_FSIZE) may end the launcher: write()
    // reports both.
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &set, &s->before);
    return 0;
}

void signals_close(struct signals *s)
{
    close(s->fd);
    s->fd = -1;
}

void signals_restore(const struct signals *s)
{
    // Discards signals that our own writes have raised, because the command may be executed in this
    // process and must not get them.
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    while (sigtimedwait(&ours, NULL, &(struct timespec){0}) > 0)
        continue;
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

int signals_next(struct signals *s, bool *from_terminal)
{
    struct signalfd_siginfo info;
    if (read(s->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    *from_terminal = info.ssi_code == SI_KERNEL;
    return (int)info.ssi_signo;
}

bool signals_ends(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}
