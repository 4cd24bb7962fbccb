// copy_there.h - the recordings that are in a folder before something is copied into it, and what
// is said of them to the nodes that they are of.
#ifndef SONDE_ASK_COPY_THERE_H
#define SONDE_ASK_COPY_THERE_H

#include "ask/copy_draft.h"

// of a request: sums of 80 files with all their slices, else with fewer
enum { ASK_COPY_SUMS_BYTES = 512 << 10 };

struct ask_there {
    // HOST.sonde; how the node was called that it is of; empty: it is no copy
    struct str name, from;
    uint64_t file;                   // of that node
    bool ours, same_range, all_time; // a copy of our job; of the time that is asked for; of all
    // it has turned out to be something else than its sums said: not to be built upon
    bool spoiled;
    struct ask_copy_sums *sums; // that the node was told; NULL: none
    bool sound;                 // nothing in it was damaged when it was summed up
};

struct ask_there_list {
    struct ask_there *files;
    size_t count;
};

// Reads what the files say of themselves. One that cannot be read is there as well, and is no copy.
// All in `arena`. -ENOMEM, or why the folder cannot be read.
int ask_there_read(const struct ask_copy_options *options, struct arena *arena,
                   struct ask_there_list *out);

// NULL: there is none.
struct ask_there *ask_there_named(const struct ask_there_list *l, struct str name);
struct ask_there *ask_there_copy(const struct ask_there_list *l, struct str from, uint64_t file);

// Sums up the copies of these hosts (0: all) for a request. A copy that cannot be read to its end
// is left out: it comes whole. -ENOMEM; what the stop says.
int ask_there_sum_up(struct ask_there_list *l, const struct ask_copy_options *options,
                     const struct str *hosts, size_t host_count, const struct ask_copy_stop *stop,
                     struct arena *arena, struct error *e);

// Of those that have sums: the request's part.
int ask_there_known(const struct ask_there_list *l, struct arena *arena,
                    const struct ask_copy_known **out, size_t *count);

#endif
