// curl.h - libcurl's functions, loaded before the first request (base/lazy_library.h).
#ifndef SONDE_CLIENT_CURL_H
#define SONDE_CLIENT_CURL_H

#include "base/error.h"

#include <curl/curl.h>

// clang-format off
#define CURL_FUNCTIONS(X) \
    X(global_init) \
    X(version_info) \
    X(easy_init) \
    X(easy_cleanup) \
    X(easy_reset) \
    X(easy_setopt) \
    X(easy_getinfo) \
    X(easy_strerror) \
    X(multi_init) \
    X(multi_cleanup) \
    X(multi_add_handle) \
    X(multi_remove_handle) \
    X(multi_perform) \
    X(multi_poll) \
    X(multi_info_read) \
    X(slist_append) \
    X(slist_free_all)
// clang-format on

struct curl_functions {
#define X(name) __typeof__(&curl_##name) name;
    CURL_FUNCTIONS(X)
#undef X
};

// Valid after curl_load() has returned 0.
extern struct curl_functions curl;

// Loads and initialises libcurl once; further calls return the result of the first. Threads may
// call it at the same time. Returns 0, or -ELIBACC with a message.
int curl_load(struct error *e);

#endif
