// control.h - the control descriptor (a pipe or a socket) of a process: it exchanges lines with its
// parent, and ends when the parent does.
//
//   parent ◀─ "ready …", "error …", later lines ── we
//          ── lines ─────────────────────────────▶
//
// However the parent ends, the kernel closes its end of the descriptor, and this process ends, too.
// SIGTERM and SIGINT also end it.
#ifndef SONDE_AGGREGATOR_CONTROL_H
#define SONDE_AGGREGATOR_CONTROL_H

#include "base/error.h"
#include "base/str.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

enum { CONTROL_LINE_MAX = 4096 }; // bytes of a received line; longer lines are ignored

struct control {
    int fd; // -1: no parent
    int signals;
    pthread_mutex_t saying;
    char line[CONTROL_LINE_MAX];
    size_t line_size; // above CONTROL_LINE_MAX: the line is too long
};

// After this call, only control_wait handles SIGTERM and SIGINT, also in threads that start later.
// After control_close they stay blocked, so a second signal does not disturb the shutdown. Raises
// the limit on open files as far as the system allows.
int control_open(struct control *c, int fd, struct error *e);
void control_close(struct control *c);

// Writes a line. Any thread may call it. If the parent has ended, control_wait notices that.
void control_say(struct control *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Waits at most timeout_ms (-1: no limit), and calls `take` (NULL: ignore lines) with each complete
// line of the parent. Returns false when the process must end.
bool control_wait(struct control *c, int timeout_ms, void (*take)(void *user, struct str line),
                  void *user);

#endif
