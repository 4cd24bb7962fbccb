// about.h - what is kept of a run beside its data: what the user calls it, and what it was started
// in. The member "about" of job.json and run.json:
//
//   { "name": "baseline", "note": "larger batches", "tags": { "lr": "0.01" },
//     "directory": "/home/a/train", "git": { "commit": "8c8d4a99…", "branch": "main" },
//     "environment": { "OMP_NUM_THREADS": "8" }, "modules": [ "gcc/13" ],
//     "machine": { … }, "nodes": 4, "config": { … } }
//
// machine.h describes "machine", parameters.h "config", which only run.json has.
//
// A member that is not known is not there. Nothing is started to find out: .git is read. Of the
// environment only a fixed list of variables is kept, which decide how a program runs and hold no
// secrets.
#ifndef SONDE_LAUNCH_ABOUT_H
#define SONDE_LAUNCH_ABOUT_H

#include "base/error.h"
#include "base/str.h"

#include <jansson.h>

enum {
    ABOUT_NAME_MAX = 64,   // bytes of a name
    ABOUT_NOTE_MAX = 4096, // bytes of a note
    ABOUT_TAGS_MAX = 32,
    ABOUT_KEY_MAX = 64,        // bytes of a tag's key
    ABOUT_VALUE_MAX = 256,     // bytes of a tag's value
    ABOUT_VARIABLE_MAX = 1024, // bytes of a variable's value; a longer one is left out
    ABOUT_MODULES_MAX = 256,
};

// One tag, KEY=VALUE: the key of letters, digits and _ . - and not a column of `sonde ls`; -EINVAL
// with words. `names`: those columns, ends with NULL; may be NULL.
int about_check_tag(struct str tag, const char *const *names, struct error *e);

// 1 to ABOUT_NAME_MAX bytes of printable UTF-8, no slash, and no word that means something else to
// commands (last). -EINVAL with words.
int about_check_name(struct str name, struct error *e);

// `tags`: KEY=VALUE, one a line, of one key the last; each may be NULL. What is given has passed
// the checks. A new reference; NULL: no memory.
json_t *about_run(const char *name, const char *note, const char *tags);

// The commit and branch that the work tree around `directory` stands at; NULL: none.
json_t *about_git(const char *directory);

#endif
