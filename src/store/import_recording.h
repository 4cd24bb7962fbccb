// import_recording.h - the recording that an import makes.
#ifndef SONDE_STORE_IMPORT_RECORDING_H
#define SONDE_STORE_IMPORT_RECORDING_H

#include "store/store.h"

// Creates a recording without a size limit. When it is closed, all its blocks are merged. `path`
// must not exist (-EEXIST). `job` may be empty.
int import_recording_create(const char *path, struct str host, struct str job, struct store **out,
                            struct error *e);

#endif
