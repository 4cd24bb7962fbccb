// run_description.h - the launcher's description of a run, in the form that servers show.
#ifndef SONDE_CLIENT_RUN_DESCRIPTION_H
#define SONDE_CLIENT_RUN_DESCRIPTION_H

#include "aggregator/aggregator.h"

// A service_run_fn. Reads run.json or, while the job runs, job.json. Returns false if the folder
// has neither.
bool run_description_read(const char *folder, struct service_run *out);

#endif
