// keeper.h - the launcher keeps the memory of programs, so that it outlives a killed agent.
//
// The agent passes the two descriptors of each program that it attaches to the process that started it, over a socket of
// SOCK_SEQPACKET, and says when it has read a program to its end. That process does not look into them (launch/keeper.h): the
// next agent finds them in its /proc/PID/fd, as those that a child of a dead program has inherited.
#ifndef SONDE_AGENT_KEEPER_H
#define SONDE_AGENT_KEEPER_H

#include "ingest/ingest.h"

struct keeper_message {
    uint64_t program; // names its segment among all of this machine
    uint64_t kept;    // 1: two descriptors come with it; 0: they are no longer needed
};

struct keeper {
    int fd;       // -1 = none
    bool refuses; // it did not take the last message: the next one does not wait
};

// Both for struct ingest_options; `user` is a struct keeper. A message that the other side does not take within KEEPER_WAIT_MS
// is given up: that program's memory goes with it, as without a keeper.
enum { KEEPER_WAIT_MS = 50 };
void keeper_keep(void *user, uint64_t program, const struct ingest_descriptors *fds);
void keeper_forget(void *user, uint64_t program);

#endif
