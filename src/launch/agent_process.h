// agent_process.h - the agent as a child process, with the state that passes from one agent to the
// next: the socket for programs, the memory of programs, and the requested collectors.
//
//   agent_process_command ─▶ the caller adds its options ─▶ agent_process_start ─▶ the agent ends
//            ▲                                                                         │
//            └─────────────────────────────────────────────────────────────────────────┘
//
// `sonde run` has one for the first node, each `sonde node` one for its own. The owner polls
// child.control and keeper.fd, reaps the child, and decides how often a new agent is started.
#ifndef SONDE_LAUNCH_AGENT_PROCESS_H
#define SONDE_LAUNCH_AGENT_PROCESS_H

#include "launch/child.h"
#include "launch/collector_requests.h"
#include "launch/job.h"
#include "launch/keeper.h"

struct agent_process {
    struct child child;
    int starts;                         // including failed ones
    char socket[FOLDER_PATH_MAX + 128]; // path of the socket; empty before the first start
    int listening; // descriptor that every agent listens on (agent_socket.h); -1: none
    struct keeper_home keeper;
    struct collector_requests collectors;
};

void agent_process_init(struct agent_process *a);

// Begins the command line "sonde agent …" in *c with the folders and names of the job. The first
// call makes the socket. Returns 0, or a negative errno with a message: then *c needs no
// child_command_free.
int agent_process_command(struct agent_process *a, const struct job *job, struct child_command *c,
                          struct error *e);

// Starts an agent with that command line, and frees *c. Returns 0 or a negative errno with a
// message.
int agent_process_start(struct agent_process *a, struct child_command *c, struct error *e);

// Reads the agent's messages. Sends the requested collectors to an agent that has become ready.
void agent_process_read(struct agent_process *a);

// Takes a line of wire/collector_line.h, without its verb, and sends it to the running agent and to
// all later ones. Returns 0 or a negative errno with a message.
int agent_process_collect(struct agent_process *a, struct str collector_line, struct error *e);

// Asks the agent to end. After its end, new programs are refused. Idempotent.
void agent_process_stop(struct agent_process *a);

// Call it when no agent runs and none will be started: from then on programs are refused, and their
// memory is released.
void agent_process_refuse(struct agent_process *a);

// Frees all but the child, which has ended.
void agent_process_free(struct agent_process *a);

#endif
