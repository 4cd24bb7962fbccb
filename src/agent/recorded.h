// recorded.h - the data that earlier agents have written into the recording: the last value of each
// series, and the events.
#ifndef SONDE_AGENT_RECORDED_H
#define SONDE_AGENT_RECORDED_H

#include "store/store.h"

struct recorded;

// Takes a snapshot of the file at `path`, which the agent has open for writing. If it cannot read
// the file, it logs the reason and returns NULL.
struct recorded *recorded_open(const char *path);
void recorded_close(struct recorded *r);

// Stores the last value of a series. Returns false if the series has none. `user` is a struct
// recorded.
bool recorded_last(void *user, uint32_t series, double *value);

// Calls `each` with the events of the recording until it returns false. `user` is a struct
// recorded.
void recorded_events(void *user, bool (*each)(const struct store_event *event, void *each_user),
                     void *each_user);

#endif
