// control.h - a process that somebody started and holds by a descriptor (a pipe or a socket): what
// it says there, what it is told, when it ends.
//
//   starter ◀─ "ready …", "error …", later lines ─ we        the starter goes away, however it dies: its end is closed and we leave, too
//           ── lines ─▶                                      so do SIGTERM and SIGINT
#ifndef SONDE_AGGREGATOR_CONTROL_H
#define SONDE_AGGREGATOR_CONTROL_H

#include "base/error.h"
#include "base/str.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

enum { CONTROL_LINE_MAX = 4096 }; // bytes of a line that is told; a longer one is left alone

struct control {
    int fd; // -1: nobody holds us
    int signals;
    pthread_mutex_t saying;
    char line[CONTROL_LINE_MAX];
    size_t line_size; // past CONTROL_LINE_MAX: too long
};

// From here on SIGTERM and SIGINT are seen by control_wait only, in every thread that is started
// afterwards, and past control_close by nobody: who is told a second time ends as orderly. As many
// files may be open as the system lets us have.
int control_open(struct control *c, int fd, struct error *e);
void control_close(struct control *c);

// One line, from any thread. Whoever does not listen any more is noticed by control_wait.
void control_say(struct control *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Waits at most timeout_ms (-1: for ever); calls take (NULL: nobody listens) with each whole line
// that was told. False: it is time to end.
bool control_wait(struct control *c, int timeout_ms, void (*take)(void *user, struct str line),
                  void *user);

#endif
