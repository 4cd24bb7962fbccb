// run_description.h - what the launcher wrote about the run of a folder, as servers show it.
#ifndef SONDE_CLIENT_RUN_DESCRIPTION_H
#define SONDE_CLIENT_RUN_DESCRIPTION_H

#include "aggregator/aggregator.h"

// A service_run_fn. Reads run.json or, while the job runs, job.json. False: the folder has neither.
bool run_description_read(const char *folder, struct service_run *out);

#endif
