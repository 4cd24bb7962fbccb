// agent_options.h - the options of an agent.
#ifndef SONDE_AGENT_AGENT_OPTIONS_H
#define SONDE_AGENT_AGENT_OPTIONS_H

#include "store/store.h"

struct agent_options {
    const char *folder;      // the run folder (0700, ours); made if it is missing
    const char *socket_path; // NULL = FOLDER/agent.sock
    const char *file_path;   // NULL = FOLDER/HOST.sonde
    // the file's folder when its own has no space (overflow.h); NULL = none
    const char *overflow_folder;
    const char *host;               // NULL = gethostname up to the first dot
    const char *job;                // goes into the file's meta
    const struct store_label *meta; // more of it: command, start, version
    size_t meta_count;
    int level;     // 1..4
    double rate_s; // node metrics and cells; 0 = 0.5
    // of node metrics, and their rates (collect_check_sources); NULL = all
    const char *sources;
    const char *scripts;       // commands that print points (scripts.h); NULL = none
    const char *script_folder; // where they run; NULL = where the agent does
    // a socket that listens already (folder_listen), where the launcher keeps it; 0 = none
    int listening_fd;
    // to the process that keeps the memory of programs (keeper.h); 0 = none
    int keeper_fd;
    int udp_port; // text protocols on loopback; 0 = no UDP
    uint64_t size_limit_bytes;
    size_t memory_bytes; // limit of the agent's memory without its mapped file; 0 = none
    double window_s;
    // -1 = none. Writes "ready\n" when the socket listens, or "error TEXT\n", later "hosts\n" when
    // the store has series of a host that it had none of (of some 16 of them, wire/host_set.h);
    // takes collectors (wire/collector_line.h); ends when it is closed from the other side
    int control_fd;
};

#endif
