// record_place.h - finds the folder for the recording of a run.
#ifndef SONDE_LAUNCH_RECORD_PLACE_H
#define SONDE_LAUNCH_RECORD_PLACE_H

#include "base/error.h"
#include "launch/folder.h"
#include "launch/job.h"

struct launch_options;

// Finds a folder that can be written and holds no recording yet: the one of --record, else among
// the kept runs. Sets job->record (--record), or `runs` to the folder of the kept runs; both stay
// empty with --no-record, and where no place is found: a warning says so, and the command runs all
// the same. With --strict that is -EROFS, with a message.
int record_place_find(const struct launch_options *o, struct job *job, char runs[FOLDER_PATH_MAX],
                      struct error *e);

#endif
