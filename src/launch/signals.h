// signals.h - signals as a stream of facts instead of interruptions.
//
// The launcher blocks what it passes on and reads it from a descriptor (signalfd). A signal that
// the terminal sent (Ctrl-C, Ctrl-\, Ctrl-Z, a new window size) has reached the whole foreground
// group, the command included: the kernel marks it as its own, and it is not sent a second time.
// One that somebody sent to the launcher alone is passed on.
#ifndef SONDE_LAUNCH_SIGNALS_H
#define SONDE_LAUNCH_SIGNALS_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>

struct signals {
    int fd;
    sigset_t before; // the mask that the command shall have
};

// Blocks the signals and opens the descriptor.
int signals_open(struct signals *s, struct error *e);
// They stay blocked: who is told to end once more, at the end, ends as orderly. (So does who wrote
// into a pipe that nobody reads.)
void signals_close(struct signals *s);

// In a new process, before exec: the mask as it was.
void signals_restore(const struct signals *s);

// The next signal that has come: its number and whether the terminal sent it; 0 when there is none.
int signals_next(struct signals *s, bool *from_terminal);

// Whether it is one that ends a program unless it says otherwise (SIGINT, SIGTERM, SIGHUP,
// SIGQUIT).
bool signals_ends(int number);

#endif
