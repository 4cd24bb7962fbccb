// collector_requests.h - the list of requested collectors (wire/collector_line.h). A process that
// starts agents keeps it, and passes it to each agent that it starts later or again. A restart of
// the command changes nothing: collectors that it requests again replace the old ones of the same
// name.
#ifndef SONDE_LAUNCH_COLLECTOR_REQUESTS_H
#define SONDE_LAUNCH_COLLECTOR_REQUESTS_H

#include "base/error.h"
#include "base/str.h"
#include "wire/collector_line.h"

struct collector_requests {
    char *lines[COLLECTORS_MAX]; // "NAME …", owned; NULL: none
};

// Adds a line without its verb: "NAME …" or "NAME". Returns 0, or with a message -E2BIG
// (COLLECTORS_MAX), -EINVAL (no name) or -ENOMEM.
int collector_requests_take(struct collector_requests *c, struct str collector_line,
                            struct error *e);

// Calls tell with each line, unchanged.
void collector_requests_tell(const struct collector_requests *c,
                             void (*tell)(void *user, const char *collector_line), void *user);

void collector_requests_free(struct collector_requests *c);

#endif
