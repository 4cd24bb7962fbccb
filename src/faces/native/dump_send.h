// dump_send.h - sends a file to another node by ssh. It appears there only when it is complete.
#ifndef SONDE_FACES_NATIVE_DUMP_SEND_H
#define SONDE_FACES_NATIVE_DUMP_SEND_H

#include "base/error.h"
#include "base/reservation.h"
#include "base/str.h"

// Makes `folder` on `node`, whose parent has to exist. -EIO with the remote error message. `watch`
// (may be NULL) is called meanwhile, and can cancel it.
int dump_send_prepare(const char *node, const char *folder, const struct work_watch *watch,
                      struct error *e);

// Copies the file at `path` to FOLDER/NAME there, with mode 0600, and under a temporary name until
// all of its bytes have arrived.
int dump_send_file(const char *node, const char *folder, const char *name, const char *path,
                   const struct work_watch *watch, struct error *e);

#endif
