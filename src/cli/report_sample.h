// report_sample.h - the recordings that `sonde report --brief` reads of a run on many nodes.
//
// Opening, decoding and comparing the recording of a node takes some 2 ms, and the lines at the end
// of `sonde run` must not keep the user waiting. A sample may lack the one node that is slow, so it
// is the last resort: of more than REPORT_SAMPLE_MAX recordings, the lines describe as many, at
// equal distances in the natural order of their hosts, the first and the last one included.
#ifndef SONDE_CLI_REPORT_SAMPLE_H
#define SONDE_CLI_REPORT_SAMPLE_H

#include <stddef.h>

enum { REPORT_SAMPLE_MAX = 1024 };

struct report_sample {
    char **paths;
    size_t count; // 0: there is no sample, because the folder has at most REPORT_SAMPLE_MAX files
    size_t of;    // recordings in the folder
};

// Chooses the recordings. Returns 0 or -ENOMEM. A path that is no folder has no sample.
int report_sample_choose(const char *folder, struct report_sample *out);
void report_sample_free(struct report_sample *s);

#endif
