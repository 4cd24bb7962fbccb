// keeper.h - passes the memory of programs to the launcher, so that the memory outlives a killed
// agent.
//
// When the agent attaches a program, it passes the program's two descriptors to the launcher, over
// a socket of SOCK_SEQPACKET. When it has read the program to its end, it sends another message.
// The launcher does not read the memory (launch/keeper.h). The next agent finds the descriptors in
// the launcher's /proc/PID/fd, as it finds descriptors that a child of a dead program has
// inherited.
#ifndef SONDE_AGENT_KEEPER_H
#define SONDE_AGENT_KEEPER_H

#include "ingest/ingest.h"

struct keeper_message {
    uint64_t program; // number of its segment, unique on this machine
    uint64_t kept;    // 1: the message carries two descriptors; 0: the launcher may close them
};

struct keeper {
    int fd; // -1 = none
    // the launcher has not taken the last message, so the next one is sent without waiting
    bool refuses;
};

// Callbacks for struct ingest_options; `user` is a struct keeper. If the launcher does not accept a
// message within KEEPER_WAIT_MS, the agent gives up, and this program's memory is not kept.
enum { KEEPER_WAIT_MS = 50 };
void keeper_keep(void *user, uint64_t program, const struct ingest_descriptors *fds);
void keeper_forget(void *user, uint64_t program);

#endif
