// annotations.h - reads the annotations that programs and agents left for sonde itself in a job or
// a recording: failing sources, parameters of the run.
#ifndef SONDE_CLI_ANNOTATIONS_H
#define SONDE_CLI_ANNOTATIONS_H

#include "client/client.h"
#include "store/store.h"

typedef void annotations_fn(const struct store_event *event, void *user);

// Calls `each` for the annotations that have this tag ("cut_off=*"), in order of time; the event is
// valid during the call. *missing is as in client_list.
int annotations_each(struct sonde_client *client, const char *tag, annotations_fn *each, void *user,
                     char **missing, struct error *e);

#endif
