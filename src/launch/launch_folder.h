// launch_folder.h - the run folder of a new job, with its token and the key of its hub.
#ifndef SONDE_LAUNCH_LAUNCH_FOLDER_H
#define SONDE_LAUNCH_LAUNCH_FOLDER_H

#include "launch/launch.h"

// Makes l->base, the run folder in it, and its files. 0, or a negative errno with words; what was
// made then stays.
int launch_folder_make(struct launch *l, struct error *e);

// Finds the files of --tls-cert and --tls-key. Fails before anything is started: the user corrects
// a wrong option.
int launch_folder_find_tls(struct launch *l, struct error *e);

#endif
