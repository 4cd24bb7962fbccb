// copy_there.h - the recordings that a folder contains before a copy begins, and how a request
// describes them to their nodes.
#ifndef SONDE_ASK_COPY_THERE_H
#define SONDE_ASK_COPY_THERE_H

#include "ask/copy_draft.h"

// limit of the sums in a request, in bytes: 80 files with all slices fit, or more files with fewer
// slices
enum { ASK_COPY_SUMS_BYTES = 512 << 10 };

struct ask_there {
    // name: HOST.sonde; from: the node from which it was copied, empty if the file is not a copy
    struct str name, from;
    uint64_t file;                   // number of the node's file
    bool ours, same_range, all_time; // a copy of our job; of the requested time; of all time
    // its contents did not match its sums, so no part of it is kept
    bool spoiled;
    struct ask_copy_sums *sums; // the sums that were sent to the node, or NULL
    bool sound;                 // no damage was found while the sums were computed
};

struct ask_there_list {
    struct ask_there *files;
    size_t count;
};

// Reads the descriptions in all files, into `arena`. An unreadable file is in the list, too, but
// does not count as a copy. Returns 0, -ENOMEM, or the reason why the folder cannot be read.
int ask_there_read(const struct ask_copy_options *options, struct arena *arena,
                   struct ask_there_list *out);

// Returns the file with this name, or NULL if the folder has no such file.
struct ask_there *ask_there_named(const struct ask_there_list *l, struct str name);
struct ask_there *ask_there_copy(const struct ask_there_list *l, struct str from, uint64_t file);

// Computes the sums of the copies of these hosts (0: all) for a request. A copy that cannot be read
// to its end gets no sums, and the node sends all of it. Returns -ENOMEM, or the result of
// ask_copy_stopped.
int ask_there_sum_up(struct ask_there_list *l, const struct ask_copy_options *options,
                     const struct str *hosts, size_t host_count, const struct ask_copy_stop *stop,
                     struct arena *arena, struct error *e);

// Writes the part of the request about the copies that have sums.
int ask_there_known(const struct ask_there_list *l, struct arena *arena,
                    const struct ask_copy_known **out, size_t *count);

#endif
