// launch_folder.h - the run folder of a new job, with its token and the key of its hub.
#ifndef SONDE_LAUNCH_LAUNCH_FOLDER_H
#define SONDE_LAUNCH_LAUNCH_FOLDER_H

#include "launch/launch.h"

// Makes l->base, the run folder in it, and its files. Returns 0, or a negative errno with a
// message; on failure, the folders made so far stay.
int launch_folder_make(struct launch *l, struct error *e);

// Finds the files of --tls-cert and --tls-key. It runs before any process starts, so the user can
// correct a wrong option.
int launch_folder_find_tls(struct launch *l, struct error *e);

#endif
