// copy_part.h - the temporary name of an incomplete copy: HOST.RANDOM.part.
//
// Other users may be able to write to the folder. Since they cannot guess the name, they cannot put
// a link in its place.
#ifndef SONDE_ASK_COPY_PART_H
#define SONDE_ASK_COPY_PART_H

#include "base/str.h"

// Stores a new name for a copy of HOST in *out, which the caller frees. Removes the drafts of HOST
// that killed processes left behind. On failure *out is NULL, and the function returns -EBUSY
// (another process is writing such a draft), -ENOMEM, or the reason why the folder cannot be read.
int copy_part_name(const char *folder, struct str host, char **out);

#endif
