#include "base/forked.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

void forked_begin(pid_t parent, int death_signal)
{
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != parent) // the parent had ended before the line above
        _exit(1);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
