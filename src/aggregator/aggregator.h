// aggregator.h - answers over HTTP, from a live job's folder or from recordings.
//
// It reads the *.sonde files directly (the reader is the same for live and closed files) and serves the faces: OpenTSDB
// (/api/…), native (/sonde/v1/…), /healthz.
#ifndef SONDE_AGGREGATOR_AGGREGATOR_H
#define SONDE_AGGREGATOR_AGGREGATOR_H

#include "base/error.h"
#include "store/read.h"

struct aggregator_options {
    const char *const *paths; // files, or folders whose *.sonde are all taken (new ones as they appear)
    size_t path_count;
    const char *listen;       // address; NULL = "127.0.0.1"
    int port;                 // 0 = 4242, the next free one if taken
    bool port_exact;          // a taken port is an error
    const char *token;        // NULL = no protection (only on loopback, only when asked for)
    const char *job;
    int level;
    bool dragon_compatible;
};

struct aggregator;

// Starts serving on threads of its own; returns when it listens.
int aggregator_start(const struct aggregator_options *options, struct aggregator **out, struct error *e);
int aggregator_port(const struct aggregator *a);
void aggregator_stop(struct aggregator *a); // finishes what is being answered, frees a

// The process: aggregator_start, writes "ready PORT\n" (or "error TEXT\n") to control_fd, serves until SIGTERM, SIGINT or the end of control_fd.
int aggregator_run(const struct aggregator_options *options, int control_fd, struct error *e);

#endif
