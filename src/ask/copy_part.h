// copy_part.h - the name that a copy has until it is whole: HOST.RANDOM.part.
//
// Other users may be able to write to the folder. They cannot put a link in place of a name that
// they cannot guess.
#ifndef SONDE_ASK_COPY_PART_H
#define SONDE_ASK_COPY_PART_H

#include "base/str.h"

// Stores a new name for a copy of HOST in *out, which the caller frees, and removes the drafts of
// HOST that killed copies left. -EBUSY: another process is writing one; -ENOMEM; or why the folder
// cannot be read. *out is then NULL.
int copy_part_name(const char *folder, struct str host, char **out);

#endif
