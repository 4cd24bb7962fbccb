// keeper.h - the launcher's side of agent/keeper.h: keeps the memory of programs open from one
// agent to the next.
//
// The launcher does not read the memory. It closes the descriptors of a program when the agent says
// so, when a new agent is ready and has not passed them again (it does not know the program), and
// when no more agents will be started.
//
// A program takes two descriptors of the launcher's limit (RLIMIT_NOFILE), of which KEEPER_SPARE
// stay free for other uses: 480 programs with the usual 1024. The launcher does not keep the memory
// of further programs: if the agent is killed, and such a program ends before the next agent runs,
// the data that the program had not yet handed over are lost.
#ifndef SONDE_LAUNCH_KEEPER_H
#define SONDE_LAUNCH_KEEPER_H

#include "agent/keeper.h"
#include "base/error.h"

enum { KEEPER_SPARE = 64, KEEPER_PROGRAMS_MAX = 4096 };

struct kept {
    uint64_t program;
    int fds[2];
    bool anew; // the present agent has passed it
};

struct keeper_home {
    int fd; // -1 = none; poll it for POLLIN
    struct kept *kept;
    size_t count, capacity;
};

void keeper_home_init(struct keeper_home *k);

// Call it before starting an agent. Returns a descriptor to hand to the child, which the caller
// closes; -1 if none could be made, and the agent runs without. Keeps the memory that the previous
// agent has passed.
int keeper_home_open(struct keeper_home *k);

void keeper_home_read(struct keeper_home *k); // reads the agent's messages
// Call it when the agent is ready, because it has then passed all programs that it knows.
void keeper_home_settle(struct keeper_home *k);
void keeper_home_close(struct keeper_home *k); // closes all descriptors; idempotent

#endif
