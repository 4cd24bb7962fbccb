// settings.h - what both ends of a connection have to agree on or may play with: the job's key,
// times, clocks, randomness.
//
// Everything is handed in; the layer has no globals. Tests play their own clock and their own
// random numbers.
#ifndef SONDE_WIRE_SETTINGS_H
#define SONDE_WIRE_SETTINGS_H

#include "base/error.h"
#include "base/str.h"

enum {
    WIRE_KEY_BYTES = 32,
    WIRE_HOST_MAX = 255, // bytes of a node's name
    WIRE_JOB_MAX = 128,  // bytes of a job's name
};

struct wire_clock {
    int64_t (*monotonic_ns)(void *user); // NULL: the system's
    int64_t (*realtime_ns)(void *user);  // NULL: the system's
    void *user;
};

struct wire_questions;

struct wire_settings {
    uint8_t key[WIRE_KEY_BYTES];
    const struct wire_questions *questions; // that nodes are asked (questions.h)
    struct str job;                         // a connection of another job is refused
    // 0 = the default. A parent's heartbeat and dead times hold for both ends: it says them when it
    // takes a node in.
    unsigned heartbeat_ms; // 1000: so often the parent pings
    unsigned dead_ms;      // 10000: so long nothing was heard: the other end is gone
    unsigned handshake_ms; // 5000
    // 100: wait before the second attempt; doubled with each up to retry_max_ms, and jittered by
    // half
    unsigned retry_ms;
    unsigned retry_max_ms; // 5000
    // 60000: so long a link stays with a parent that is not the first, which then is tried again
    unsigned return_ms;
    struct wire_clock clock;
    int (*random)(void *user, uint8_t *out, size_t size); // NULL: getrandom; 0 or a negative errno
    void *random_user;
};

// A copy of `in` with defaults filled in.
struct wire_settings wire_settings_of(const struct wire_settings *in);

int64_t wire_monotonic_ns(const struct wire_settings *s);
int64_t wire_realtime_ns(const struct wire_settings *s);
int wire_random(const struct wire_settings *s, uint8_t *out, size_t size);

// The key's file: exactly 32 bytes, a regular file of this user that nobody else can read or write.
// wire_key_make writes a new one (-EEXIST: it is there).
int wire_key_read(const char *path, uint8_t key[WIRE_KEY_BYTES], struct error *e);
int wire_key_make(const char *path, uint8_t key[WIRE_KEY_BYTES], struct error *e);

#endif
