// brief_report.h - the lines of `sonde report --brief` at the end of a run.
//
// The report queries the recording, but the launcher belongs to a layer below queries. So another
// process of this program makes the report, and the launcher copies its lines to standard error.
//
//   launcher ── fork, exec ──▶ sonde report --brief FOLDER
//       ◀──── pipe: all lines, or none ────┘
//
// The report must not delay the end of a run. So the launcher kills a report that takes longer than
// BRIEF_REPORT_MS, and prints no part of it. A failing report is not an error of the run.
#ifndef SONDE_LAUNCH_BRIEF_REPORT_H
#define SONDE_LAUNCH_BRIEF_REPORT_H

#include <stdint.h>

enum {
    BRIEF_REPORT_LEAST_S = 10, // runs shorter than this end without a report
    BRIEF_REPORT_MS = 1000,
    BRIEF_REPORT_BYTES = 4096, // size limit of its lines
};

// Prints the lines about the recordings in `folder`, whose command ran from start to end.
void brief_report(const char *folder, int64_t start_ns, int64_t end_ns);

#endif
