// runs_move.h - another name or another folder for a recorded run.
//
// The folder is renamed; to another file system it is copied as ".NAME.moving", synced, renamed and
// only then removed here, so that a complete recording is in one of the two places at any time.
#ifndef SONDE_LAUNCH_RUNS_MOVE_H
#define SONDE_LAUNCH_RUNS_MOVE_H

#include "base/error.h"
#include "launch/folder.h"

// Sets the name of --name in run.json of `folder`; other members stay as they are, also those of
// later versions. The name has passed run_metadata_check_name. 0 or a negative errno with words.
int runs_rename(const char *folder, const char *name, struct error *e);

// Moves the recording's folder to the path `to`, or into it if that is a folder; *out is the new
// path. -EEXIST: something is there. -EBUSY: it is being written. -EINVAL: `folder` has no
// run.json, or holds something other than files.
int runs_move(const char *folder, const char *to, char out[FOLDER_PATH_MAX], struct error *e);

#endif
