// dump.h - copies every node's data to local files while the job runs: POST /sonde/v1/dump.
//
//   relays ──COPY──▶ hub ─┬▶ FOLDER/HOST.sonde                   if a folder is given
//   our own file ─────────┘└▶ a folder beside our own file       if a node is configured
//                             ──ssh──▶ NODE:DIR/sonde-dump-JOB/HOST.sonde
//
// A file appears only when it is complete. For an existing file only new data is transferred
// (ask/copy_wire.h); files for another node are always new. One dump runs at a time, and copies
// DUMP_NODES_AT_ONCE nodes at a time. It ends when its client hangs up; complete files stay.
#ifndef SONDE_FACES_NATIVE_DUMP_H
#define SONDE_FACES_NATIVE_DUMP_H

#include "faces/service.h"

enum {
    DUMP_NODES_AT_ONCE = 32,
    // for this number of nodes; a lost node is noticed long before (wire/hub.h)
    DUMP_DEADLINE_S = 3600,
    DUMP_PATH_MAX = 4096,
};

struct dump;

int dump_create(struct dump **out, struct error *e);
void dump_destroy(struct dump *d);

// Writes "dump":{"running":…}, the progress.
void dump_write(struct dump *d, const struct service *service, struct json_writer *w);

#endif
