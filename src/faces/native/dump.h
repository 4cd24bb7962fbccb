// dump.h - every node's data as files of our own, while the job runs: POST /sonde/v1/dump.
//
//   relays ──COPY──▶ hub ─▶ FOLDER/HOST.sonde                              where somebody has said which folder
//   our own file ────┘   └▶ a folder beside our own file ──ssh──▶ NODE:DIR/sonde-dump-JOB/HOST.sonde      where it is configured so
//
// A file is whole, or not there, and of one that is there already only what is new travels
// (ask/copy_wire.h); files for another node are always new. One dump at a time; DUMP_NODES_AT_ONCE
// nodes are copied at a time. Who hangs up ends it: what is whole by then stays.
#ifndef SONDE_FACES_NATIVE_DUMP_H
#define SONDE_FACES_NATIVE_DUMP_H

#include "faces/service.h"

enum {
    DUMP_NODES_AT_ONCE = 32,
    // for so many nodes; one that is lost is noticed long before (wire/hub.h)
    DUMP_DEADLINE_S = 3600,
    DUMP_PATH_MAX = 4096,
};

struct dump;

int dump_create(struct dump **out, struct error *e);
void dump_destroy(struct dump *d);

// "dump":{"running":…}: how far it is.
void dump_write(struct dump *d, const struct service *service, struct json_writer *w);

#endif
