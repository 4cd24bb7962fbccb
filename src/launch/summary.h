// summary.h - summarises a run in a few lines, which `sonde run` prints at its end and `sonde
// status` while it runs.
//
// All figures come from the node's file through the store's reader, whether the file is live,
// closed, or left by a killed process.
#ifndef SONDE_LAUNCH_SUMMARY_H
#define SONDE_LAUNCH_SUMMARY_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct summary_figure {
    uint64_t count; // 0: no data
    double mean, peak;
};

// A source of node metrics that has stopped answering.
struct summary_cut_off {
    char host[64], source[64];
    int64_t since_ns;
};

// A script or collector that fails at the end of the data.
struct summary_failing {
    char host[64], script[64], gpu[16], text[256]; // gpu: "" for none
    int64_t since_ns;
};

enum { SUMMARY_CUT_OFF_MAX = 32, SUMMARY_FAILING_MAX = 32 }; // limits of the lists

struct summary {
    uint64_t points, series;
    uint64_t dropped; // refused or lost, for any cause
    uint64_t retired; // values removed to make room for newer ones
    uint64_t damaged_blocks;
    bool emitted; // the file has data of the user's programs
    struct summary_figure cpu_percent, memory_bytes;
    double memory_total_bytes; // 0: unknown
    double job_cpu_seconds;    // of the job's processes; 0 if their time is below the clock's tick
    bool job_cpu_known;
    size_t nodes; // number of files
    struct summary_cut_off cut_off[SUMMARY_CUT_OFF_MAX];
    size_t cut_off_count;
    struct summary_failing failing[SUMMARY_FAILING_MAX];
    size_t failing_count;
};

// Adds the contents of the file at `path` to *out (zero-initialise it).
int summary_add_file(const char *path, struct summary *out, struct error *e);

// Adds every *.sonde of a folder. Skips an unreadable file with a warning, unless it is the only
// one.
int summary_add_folder(const char *folder, struct summary *out, struct error *e);

// Reads an annotation of the agent about a source or script that fails or works again. Call it in
// the order of the annotations' times.
struct store_event;
void summary_add_event(const struct store_event *event, struct summary *out);

// Writes "3.2 s", "4 min 10 s", "2 h 3 min".
void summary_duration_text(int64_t ns, char *out, size_t size);
// Writes "1.5 GiB".
void summary_bytes_text(double bytes, char *out, size_t size);

#endif
