// keeper.h - the other side of agent/keeper.h: keeps the memory of programs open while agents come and go.
//
// Nothing looks into the memory here. Descriptors are closed when the agent says so, when an agent that is ready has not passed
// them anew (it does not know the program), and when no agent will be started any more.
//
// A program takes two descriptors of our limit (RLIMIT_NOFILE), of which we leave KEEPER_SPARE for other uses: 480 programs with
// the usual 1024. Past that, memory is not kept, and what a program has not handed over when its agent is killed is lost if the
// program ends before the next agent runs.
#ifndef SONDE_LAUNCH_KEEPER_H
#define SONDE_LAUNCH_KEEPER_H

#include "agent/keeper.h"
#include "base/error.h"

enum { KEEPER_SPARE = 64, KEEPER_PROGRAMS_MAX = 4096 };

struct kept {
    uint64_t program;
    int fds[2];
    bool anew; // by the agent that runs now
};

struct keeper_home {
    int fd; // -1 = none; poll it for POLLIN
    struct kept *kept;
    size_t count, capacity;
};

void keeper_home_init(struct keeper_home *k);

// Before an agent is started. The descriptor for it, which can be handed to a child; the caller closes it. -1: none could be
// made, and the agent does without. What the agent before has passed is kept.
int keeper_home_open(struct keeper_home *k);

void keeper_home_read(struct keeper_home *k);   // what has come
void keeper_home_settle(struct keeper_home *k); // the agent is ready: it has passed all that it knows
void keeper_home_close(struct keeper_home *k);  // keeps nothing any more. Idempotent.

#endif
