// launch.h - the state of one `sonde run`. Inside src/launch only: launcher.c has the stages,
// supervisor.c the loop, launch_folder.c the run folder, shutdown.c the end.
#ifndef SONDE_LAUNCH_LAUNCH_H
#define SONDE_LAUNCH_LAUNCH_H

#include "http/tokens.h"
#include "launch/agent_process.h"
#include "launch/aggregator_process.h"
#include "launch/job.h"
#include "launch/nodes.h"
#include "launch/run.h"
#include "launch/signals.h"
#include "launch/tunnel.h"
#include "wire/settings.h"

enum {
    LAUNCH_PATH_BYTES = FOLDER_PATH_MAX + 128,
    LAUNCH_LOOK_MS = 50, // period of polling states that have no event
    NODE_ARGUMENTS_MAX = 8,
};

struct launch {
    const struct launch_options *o;
    struct job job;
    struct signals signals;
    int lock_fd;
    // `runs`: empty if the recording lies elsewhere
    char base[FOLDER_PATH_MAX], runs[FOLDER_PATH_MAX];
    char token_file[LAUNCH_PATH_BYTES], hostfile[LAUNCH_PATH_BYTES];
    char token[TOKEN_TEXT_MAX];
    // key of the hub; empty without other nodes
    char key_file[LAUNCH_PATH_BYTES], key[2 * WIRE_KEY_BYTES + 1];
    int hub_port; // 0: not known yet
    // absolute paths, because the aggregator changes its folder
    char tls_cert[FOLDER_PATH_MAX], tls_key[FOLDER_PATH_MAX];
    struct agent_process agent;
    struct aggregator_process aggregator;
    int hostfile_fd; // a hostfile in memory; -1: a file in the folder
    bool up;         // the start is complete, so addresses can be published
    pid_t command;   // 0 before it starts and after it has ended
    int command_status;
    int64_t ended_ns; // CLOCK_MONOTONIC
    // of the command that ended last; 0: none has
    pid_t ended_pid;
    uint64_t ended_us;  // processor time of the command and its children
    int interrupted;    // a signal that arrived before the command started
    bool hurry;         // the user does not want to wait for the end of the agent
    bool end_requested; // the command was asked to end, so it is not started again
    bool unstarted;     // fork failed, for the reason `why`: this process becomes the command
    struct error why;
    struct nodes *nodes;
    struct tunnel tunnel;
    char *node_arguments[NODE_ARGUMENTS_MAX + 1]; // owned: for the agents of other nodes
};

#endif
