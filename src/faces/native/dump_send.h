// dump_send.h - a file to another node by ssh: whole under its name there, or not there.
#ifndef SONDE_FACES_NATIVE_DUMP_SEND_H
#define SONDE_FACES_NATIVE_DUMP_SEND_H

#include "base/error.h"
#include "base/reservation.h"
#include "base/str.h"

// Makes `folder` on `node`; the one above it has to be there. -EIO with what was said there.
// `watch` (may be NULL) is asked meanwhile, and ends it.
int dump_send_prepare(const char *node, const char *folder, const struct work_watch *watch,
                      struct error *e);

// The file at `path` becomes FOLDER/NAME there, mode 0600: under another name until all of its
// bytes are there.
int dump_send_file(const char *node, const char *folder, const char *name, const char *path,
                   const struct work_watch *watch, struct error *e);

#endif
