// run_facts.h - the description of a run as a flat list of texts: its command, parameters, tags,
// environment, code and machine.
#ifndef SONDE_CLI_RUN_FACTS_H
#define SONDE_CLI_RUN_FACTS_H

#include "launch/job.h"

#include <jansson.h>

// Returns {"command": "train.py", "config.lr": "0.01", "git.commit": "8c8d…", …}, a new reference;
// NULL: out of memory.
json_t *run_facts(const struct job *job);

// Returns only the facts in "about" (job.h). If it is NULL or not an object, the list is empty.
json_t *run_facts_of(const json_t *about);

// Adds the facts of another run to a side. If a fact differs between its runs, it gets all values.
void run_facts_join(json_t *side, const json_t *run);

#endif
