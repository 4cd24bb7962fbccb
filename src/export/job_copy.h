// job_copy.h - a running job as the source of an export: copies the selected data of all its nodes
// into recordings on this machine, which are then exported like any other.
//
//   a job ─▶ queries in slices of time ─▶ FOLDER/HOST.sonde, … ─▶ source.h
//
// A format needs one complete series after another, but a job answers a query with a slice of time
// of all series. So the points are sorted on disk, where they take one to three bytes each. Every
// slice is a query of its own, which bounds the memory of the client, the nodes and the server, and
// lets the server answer other clients in between.
//
// The copy ends at the time of the job's newest point when copying begins.
#ifndef SONDE_EXPORT_JOB_COPY_H
#define SONDE_EXPORT_JOB_COPY_H

#include "client/client.h"
#include "export/selection.h"

enum {
    JOB_COPY_SLICE_POINTS = 1 << 18, // points of one query: an answer of some megabytes
    JOB_COPY_SLICE_EVENTS = 10000,   // events of one list
};

struct job_copy {
    const char *folder; // must exist and be empty
    // Nodes without an answer, "n2 (late), n7 (not connected)". The caller frees it.
    struct buf missing;
    uint64_t points, events; // number of copied points and events
    double share;            // copied share of the job's metrics and time, 0 to 1
    // Called after each slice. May be NULL.
    void (*progress)(const struct job_copy *copy, void *user);
    void *user;
};

// Copies the selection of the client's only job. Returns -ECANCELED if the client's `stop` has
// returned true. After a failure the folder is empty.
int job_copy_make(struct job_copy *copy, struct sonde_client *job,
                  const struct export_selection *selection, struct error *e);

#endif
