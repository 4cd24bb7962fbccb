// channel.h - a process that the launcher exchanges lines with: srun or ssh, and `sonde node`
// behind it.
//
//   we ──lines──▶ its standard input          while the pipe is full, lines wait here
//   we ◀─lines─── its standard output         answers
//   we ◀─lines─── its standard error          messages for people, reasons of failures
//
// The process has a session of its own, so Ctrl-C on the terminal does not reach it. If the
// launcher dies, the process reads the end of its standard input.
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
    struct channel_line answer, word; // the beginning of the next line
};

// Starts argv (found in PATH). If the launcher dies, the kernel sends `death_signal` (0 = none) to
// the process. Returns 0, or a negative errno with a message; then the channel is as channel_none
// made it. A program that cannot be executed is reported on the channel's standard error.
int channel_start(struct channel *c, char *const argv[], int death_signal, struct error *e);
void channel_none(struct channel *c);

// Adds text. Drops it after channel_finish, and if too much is waiting.
void channel_add(struct channel *c, struct str text);
// Sends the added text, as much as the pipe takes. Call it again when the pipe has room.
void channel_flush(struct channel *c);
static inline bool channel_waits(const struct channel *c) // whether text waits for room
{
    return c->to >= 0 && c->pending.size > 0;
}

// Closes its standard input. Idempotent.
void channel_finish(struct channel *c);

// Reads from `from` or `words` and calls take() with each complete line. At the end of the stream
// it also passes the last, unfinished line, and closes the descriptor. Lines over CHANNEL_LINE_MAX
// are cut.
void channel_read(struct channel *c, bool words, void (*take)(void *user, const char *line),
                  void *user);

// Closes all descriptors. The process has been reaped, or is no longer of interest.
void channel_close(struct channel *c);

#endif
