// no_recording.h - what to do about a folder that holds no recordings.
#ifndef SONDE_STORE_NO_RECORDING_H
#define SONDE_STORE_NO_RECORDING_H

#include "base/error.h"
#include "base/str.h"

// -ENOENT, and in *e that PATH holds no recording; if databases of Dragon's telemetry lie there (or
// in its folder telemetry), also how to import them.
int no_recording(const char *path, struct error *e);

// Whether a file has the name of a database of Dragon's telemetry for one host: ts_….db.
bool no_recording_but_dump(struct str name);

#endif
