// run_metadata.h - facts about a run beside its data: its name, and the environment in which it
// started. They form the member "about" of job.json and run.json:
//
//   { "name": "baseline", "note": "larger batches", "tags": { "lr": "0.01" },
//     "directory": "/home/a/train", "git": { "commit": "8c8d4a99…", "branch": "main" },
//     "environment": { "OMP_NUM_THREADS": "8" }, "modules": [ "gcc/13" ],
//     "machine": { … }, "nodes": 4, "config": { … } }
//
// machine.h describes "machine", parameters.h "config", which only run.json has.
//
// Unknown facts are left out. sonde starts no program to learn them: it reads .git itself. It keeps
// only a fixed list of environment variables, which affect how a program runs and contain no
// secrets.
#ifndef SONDE_LAUNCH_RUN_METADATA_H
#define SONDE_LAUNCH_RUN_METADATA_H

#include "base/error.h"
#include "base/str.h"

#include <jansson.h>

enum {
    RUN_METADATA_NAME_MAX = 64,   // bytes of a name
    RUN_METADATA_NOTE_MAX = 4096, // bytes of a note
    RUN_METADATA_TAGS_MAX = 32,
    RUN_METADATA_KEY_MAX = 64,        // bytes of a tag's key
    RUN_METADATA_VALUE_MAX = 256,     // bytes of a tag's value
    RUN_METADATA_VARIABLE_MAX = 1024, // bytes of a variable's value; longer values are left out
    RUN_METADATA_MODULES_MAX = 256,
};

// Checks one tag, KEY=VALUE: the key consists of letters, digits and _ . -, and is not the name of
// a column of `sonde ls`. Returns -EINVAL with a message. `names` are these columns, ended by NULL;
// it may be NULL.
int run_metadata_check_tag(struct str tag, const char *const *names, struct error *e);

// Checks a name: 1 to RUN_METADATA_NAME_MAX bytes of printable UTF-8, without a slash, and not a
// word with another meaning for commands (last). Returns -EINVAL with a message.
int run_metadata_check_name(struct str name, struct error *e);

// Returns a new reference; NULL without memory. `tags`: one KEY=VALUE a line; the last value of a
// key counts. Each argument may be NULL; the others have passed the checks above.
json_t *run_metadata_run(const char *name, const char *note, const char *tags);

// Returns the commit and branch of the work tree around `directory`; NULL if there is none.
json_t *run_metadata_git(const char *directory);

#endif
