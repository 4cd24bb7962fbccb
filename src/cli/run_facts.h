// run_facts.h - the description of a run as a flat list of texts: its command, parameters, tags,
// environment, code and machine.
#ifndef SONDE_CLI_RUN_FACTS_H
#define SONDE_CLI_RUN_FACTS_H

#include "launch/job.h"

#include <jansson.h>

// {"command": "train.py", "config.lr": "0.01", "git.commit": "8c8d…", …}. A new reference; NULL: no
// memory.
json_t *run_facts(const struct job *job);

// Adds the facts of one more run of a side: of facts that differ among them, all values.
void run_facts_join(json_t *side, const json_t *run);

#endif
