// runs_move.h - renames a recorded run, or moves its folder.
//
// The folder is renamed. To another file system it is copied as ".NAME.moving", synced, renamed,
// and only then removed here, so that one of the two places always has a complete recording.
#ifndef SONDE_LAUNCH_RUNS_MOVE_H
#define SONDE_LAUNCH_RUNS_MOVE_H

#include "base/error.h"
#include "launch/folder.h"

// Sets the run's name in run.json of `folder`; other members stay unchanged, also those of later
// versions. The name has passed run_metadata_check_name. Returns 0 or a negative errno with a
// message.
int runs_rename(const char *folder, const char *name, struct error *e);

// Moves the run's folder to the path `to`, or into it if it is a folder; *out is the new path.
// Returns -EEXIST if the new path exists; -EBUSY if the run is being written; -EINVAL if `folder`
// has no run.json, or contains anything but files.
int runs_move(const char *folder, const char *to, char out[FOLDER_PATH_MAX], struct error *e);

#endif
