// no_recording.h - the error for a folder without recordings.
#ifndef SONDE_STORE_NO_RECORDING_H
#define SONDE_STORE_NO_RECORDING_H

#include "base/error.h"
#include "base/str.h"

// Returns -ENOENT, and sets *e to "PATH holds no recording". If the folder (or its folder
// telemetry) has databases of Dragon's telemetry, *e also says how to import them.
int no_recording(const char *path, struct error *e);

// True if the file's name is ts_….db, the name of a database of Dragon's telemetry for one host.
bool no_recording_but_dump(struct str name);

#endif
