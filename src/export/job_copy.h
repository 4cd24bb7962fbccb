// job_copy.h - a running job as the source of an export: the selected data of all its nodes, copied
// into recordings of this machine, which are exported like any other.
//
//   a job ─▶ queries in slices of time ─▶ FOLDER/HOST.sonde, … ─▶ source.h
//
// A format needs a series after the other, each as a whole, while a job answers a query with all
// series of a slice of time. So the points are sorted on disk, where they take one to three bytes
// each. Every slice is a query of its own, which bounds the memory of the client, of the nodes and
// of the server, and leaves the server time for other clients.
//
// The copy ends at the time of the newest point that the job has when the copying begins.
#ifndef SONDE_EXPORT_JOB_COPY_H
#define SONDE_EXPORT_JOB_COPY_H

#include "client/client.h"
#include "export/selection.h"

enum {
    JOB_COPY_SLICE_POINTS = 1 << 18, // of one query: some megabytes of an answer
    JOB_COPY_SLICE_EVENTS = 10000,   // of one list
};

struct job_copy {
    const char *folder; // exists and is empty
    // Nodes without an answer, "n2 (late), n7 (not connected)". The caller frees it.
    struct buf missing;
    uint64_t points, events; // copied
    double share;            // of the job's metrics and time, 0 to 1
    // Called after each slice. May be NULL.
    void (*progress)(const struct job_copy *copy, void *user);
    void *user;
};

// Copies the selection of the client's only job. -ECANCELED: the client's `stop` said so. On
// failure the folder is empty.
int job_copy_make(struct job_copy *copy, struct sonde_client *job,
                  const struct export_selection *selection, struct error *e);

#endif
