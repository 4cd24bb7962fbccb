// channel.h - a process that we talk to by lines: srun or ssh, and `sonde node` behind it.
//
//   us ──lines──▶ its standard input          what does not fit into the pipe now is kept and sent later
//   us ◀─lines─── its standard output         answers
//   us ◀─lines─── its standard error          words for people, and why it failed
//
// It runs in a session of its own, so that Ctrl-C on the terminal does not reach it. When we die
// its standard input ends.
#ifndef SONDE_LAUNCH_CHANNEL_H
#define SONDE_LAUNCH_CHANNEL_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
    CHANNEL_LINE_MAX = 1024,               // bytes of a line that are kept
    CHANNEL_PENDING_MAX = 8 * 1024 * 1024, // bytes that wait to be sent
};

struct channel_line {
    char text[CHANNEL_LINE_MAX + 1];
    size_t size;
};

struct channel {
    pid_t pid;           // 0: there is none
    int to, from, words; // -1: closed
    struct buf pending;
    struct channel_line answer, word; // what has come of the next line
};

// Starts argv (found in PATH); `death_signal` (0 = none) is sent to it when we die. 0, or a
// negative errno with words; then the channel is as channel_none made it. A program that cannot be
// executed says so on its standard error and ends.
int channel_start(struct channel *c, char *const argv[], int death_signal, struct error *e);
void channel_none(struct channel *c);

// Sends text, now or later; after channel_finish and when too much waits it is dropped.
void channel_send(struct channel *c, struct str text);
void channel_flush(struct channel *c);                    // the pipe has room again
static inline bool channel_waits(const struct channel *c) // something is waiting for room
{
    return c->to >= 0 && c->pending.size > 0;
}

// Closes its standard input. Idempotent.
void channel_finish(struct channel *c);

// Reads what has come on `from` or `words` and calls take() with each whole line; at the end of the
// stream also with the last, unfinished one, and the descriptor is closed. Longer lines are cut.
void channel_read(struct channel *c, bool words, void (*take)(void *user, const char *line),
                  void *user);

// Closes all and forgets it. It has been reaped, or is left to itself.
void channel_close(struct channel *c);

#endif
