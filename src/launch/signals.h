// signals.h - reads signals from a descriptor instead of handling them as interruptions.
//
// The launcher blocks the signals that it passes on, and reads them from a descriptor (signalfd). A
// signal of the terminal (Ctrl-C, Ctrl-\, Ctrl-Z, a new window size) has reached the whole
// foreground group, including the command. The kernel marks it as its own, and the launcher does
// not send it again. It passes on a signal that was sent to the launcher alone.
#ifndef SONDE_LAUNCH_SIGNALS_H
#define SONDE_LAUNCH_SIGNALS_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>

struct signals {
    int fd;
    sigset_t before; // the mask for the command
};

// Blocks the signals and opens the descriptor.
int signals_open(struct signals *s, struct error *e);
// Closes the descriptor. The signals stay blocked, so that neither a second request to end nor a
// write into a closed pipe interrupts the shutdown.
void signals_close(struct signals *s);

// Restores the mask in a new process, before exec.
void signals_restore(const struct signals *s);

// Returns the number of the next pending signal, and whether the terminal sent it; 0 if there is
// none.
int signals_next(struct signals *s, bool *from_terminal);

// Whether the signal's default action ends a program (SIGINT, SIGTERM, SIGHUP, SIGQUIT).
bool signals_ends(int number);

#endif
