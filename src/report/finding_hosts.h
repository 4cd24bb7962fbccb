// finding_hosts.h - the hosts of a finding: one cause on several hosts is one finding that names
// them.
//
//   struct finding_hosts slow = {0};
//   finding_hosts_add(r, &slow, line->host); // for each that has the problem
//   f->title = finding_text(r, "tasks waited on %.*s", STR_ARG(finding_hosts_names(r, &slow)));
#ifndef SONDE_REPORT_FINDING_HOSTS_H
#define SONDE_REPORT_FINDING_HOSTS_H

#include "report/report.h"

enum {
    HOSTS_NAMED_MAX = 4,     // in a title
    HOSTS_FILTERED_MAX = 16, // in an expression
};

// Sorted, each once. The memory is in the report's arena; a host that finds no memory is left out.
struct finding_hosts {
    struct str *all;
    size_t count, capacity;
};

void finding_hosts_add(struct report *r, struct finding_hosts *h, struct str host);

// "n1", "n1 and n2", "n1, n2, n3, n4 and 7 more"; of other names, too.
struct str finding_names(struct report *r, const struct finding_hosts *h);
// The same; "all 12 nodes" for many that are all of the run.
struct str finding_hosts_names(struct report *r, const struct finding_hosts *h);
// " on n1 and n2"; empty in a run of one node.
struct str finding_hosts_on(struct report *r, const struct finding_hosts *h);
// "n1,n2".
struct str finding_hosts_list(struct report *r, const struct finding_hosts *h);
// The filter of an expression, with the further filter `more` ("gpu=2|3") unless it is empty:
// "{host=n1|n2,gpu=2|3}". Leaves out the hosts if there are many; empty: no filter.
struct str finding_hosts_filter(struct report *r, const struct finding_hosts *h, struct str more);

#endif
