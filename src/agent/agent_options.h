// agent_options.h - the options of an agent.
#ifndef SONDE_AGENT_AGENT_OPTIONS_H
#define SONDE_AGENT_AGENT_OPTIONS_H

#include "store/store.h"

struct agent_options {
    const char *folder; // the run folder (mode 0700, owned by our user); created if it is missing
    const char *socket_path; // NULL = FOLDER/agent.sock
    const char *file_path;   // NULL = FOLDER/HOST.sonde
    // the folder to which the file moves when the run folder has no space (overflow.h); NULL = none
    const char *overflow_folder;
    const char *host;               // NULL = gethostname up to the first dot
    const char *job;                // an attribute of the file
    const struct store_label *meta; // more attributes of the file: command, start, version
    size_t meta_count;
    int level;     // 1..4
    double rate_s; // seconds between samples of node metrics and cells; 0 = 0.5
    // the sources of node metrics and their rates (collect_check_sources); NULL = all
    const char *sources;
    const char *scripts;       // commands that print points (scripts.h); NULL = none
    const char *script_folder; // working folder of the scripts; NULL = that of the agent
    // a listening socket (folder_listen) that the launcher keeps open; 0 = none
    int listening_fd;
    bool new_socket; // no program knows the socket yet, so none is searched for
    // a socket to the process that keeps the memory of programs (keeper.h); 0 = none
    int keeper_fd;
    int udp_port; // port for text protocols on loopback; 0 = no UDP
    uint64_t size_limit_bytes;
    size_t memory_bytes; // limit of the agent's memory without its mapped file; 0 = none
    double window_s;
    // The control descriptor; -1 = none. The agent writes "ready\n" to it when the socket listens,
    // or "error TEXT\n", and later "hosts\n" when the store has series of a new host (for some 16
    // hosts, wire/host_set.h). The agent reads collectors from it (wire/collector_line.h), and ends
    // when the other side closes it.
    int control_fd;
};

#endif
