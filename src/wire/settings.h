// settings.h - the settings of one end of a connection: the job's key, timeouts, clocks, random
// numbers.
//
// Callers pass all of them, because the layer has no global state. Tests pass their own clock and
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
    const struct wire_questions *questions; // the questions for nodes (questions.h)
    struct str job;                         // a connection of another job is refused
    // 0 = the default. Both ends use the parent's heartbeat and dead times, which it sends in its
    // WELCOME.
    unsigned heartbeat_ms; // 1000: interval of the parent's pings
    unsigned dead_ms;      // after this time without a frame, the other end counts as dead
    unsigned handshake_ms; // 5000
    // 100: wait before the second attempt; doubles with each attempt up to retry_max_ms, with a
    // jitter of half
    unsigned retry_ms;
    unsigned retry_max_ms; // 5000
    // 60000: after this time with another parent, a link tries the first one again
    unsigned return_ms;
    struct wire_clock clock;
    // NULL: getrandom; returns 0 or a negative errno
    int (*random)(void *user, uint8_t *out, size_t size);
    void *random_user;
};

// Returns a copy of `in` with the defaults filled in.
struct wire_settings wire_settings_of(const struct wire_settings *in);

int64_t wire_monotonic_ns(const struct wire_settings *s);
int64_t wire_realtime_ns(const struct wire_settings *s);
int wire_random(const struct wire_settings *s, uint8_t *out, size_t size);

// Reads the key's file: exactly 32 bytes, in a regular file of this user that other users cannot
// access. wire_key_make writes a new key; it returns -EEXIST if the file exists.
int wire_key_read(const char *path, uint8_t key[WIRE_KEY_BYTES], struct error *e);
int wire_key_make(const char *path, uint8_t key[WIRE_KEY_BYTES], struct error *e);

#endif
