// runs_index.h - RUNS/.sonde-index: the facts of all kept runs that decide which of them are
// removed. With it, a job that ends reads one file instead of a folder for each kept run.
//
// The first line is "sonde runs 1 TIME": at this time, nanoseconds since the epoch, all folders
// were read. Each further line is a run: "START BYTES GRADE KEEP NAME". Launchers add lines at the
// end, also several at the same time. After a removal, a launcher writes a new file.
//
// The index is a hint: users remove, rename and copy folders. So a run is removed only after its
// folder has been read, and a run without a line is noticed when all folders are read again.
#ifndef SONDE_LAUNCH_RUNS_INDEX_H
#define SONDE_LAUNCH_RUNS_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RUNS_INDEX_HOURS = 24, // after this time, all folders are read again
    RUNS_INDEX_BYTES_MAX = 32 << 20,
};

struct runs_line {
    int64_t start_ns;
    uint64_t bytes;
    int grade;
    bool keep;
    char *name; // of the folder in RUNS
};

// Zero-initialise it, and call runs_index_free at the end.
struct runs_index {
    struct runs_line *lines;
    size_t count, capacity;
    int64_t read_ns; // the time of the first line
};

// Reads the index. The last line of a name counts. Returns 0, or a negative errno if it does not
// exist, is too old or damaged; *out then has no lines.
int runs_index_read(const char *runs, int64_t now_ns, struct runs_index *out);

// Copies `line` into the list. Returns false if memory is exhausted.
bool runs_index_put(struct runs_index *index, const struct runs_line *line);

// Writes the index anew, or adds a line to it. A failure costs only time, so it is not reported;
// the index is then removed. A name with a newline is a failure.
void runs_index_write(const char *runs, const struct runs_index *index);
void runs_index_add(const char *runs, const struct runs_line *line);

// Removes the index of the folder in which the run `path` is now, because it has no line for it.
void runs_index_forget(const char *path);

void runs_index_free(struct runs_index *index);

#endif
