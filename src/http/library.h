// library.h - libmicrohttpd's functions, loaded before a server starts (base/lazy_library.h).
#ifndef SONDE_HTTP_LIBRARY_H
#define SONDE_HTTP_LIBRARY_H

#include "base/error.h"

#include <microhttpd.h>

// clang-format off
#define MICROHTTPD_FUNCTIONS(X) \
    X(create_response_from_buffer) \
    X(create_response_from_callback) \
    X(add_response_header) \
    X(queue_response) \
    X(destroy_response) \
    X(lookup_connection_value) \
    X(get_connection_info) \
    X(suspend_connection) \
    X(resume_connection) \
    X(add_connection) \
    X(is_feature_supported) \
    X(start_daemon) \
    X(stop_daemon)
// clang-format on

struct microhttpd_functions {
#define X(name) __typeof__(&MHD_##name) name;
    MICROHTTPD_FUNCTIONS(X)
#undef X
};

// Valid after microhttpd_load() has returned 0.
extern struct microhttpd_functions microhttpd;

// Loads libmicrohttpd. Further calls change nothing. Returns 0, or -ELIBACC with a message.
int microhttpd_load(struct error *e);

#endif
