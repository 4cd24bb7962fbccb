#include "client/curl.h"

#include "base/lazy_library.h"

#include <errno.h>
#include <pthread.h>

struct curl_functions curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int status;
static struct error reason;

static int find_functions(void)
{
#ifdef SONDE_LIBRARY_CURL
#define X(name) {"curl_" #name, &curl.name},
    static const struct lazy_function functions[] = {CURL_FUNCTIONS(X)};
    return lazy_library_load(SONDE_LIBRARY_CURL, functions, sizeof functions / sizeof *functions,
                             &reason);
#else
#define X(name) curl.name = curl_##name;
    CURL_FUNCTIONS(X)
    return 0;
#endif
#undef X
}

static void load(void)
{
    status = find_functions();
    if (!status && curl.global_init(CURL_GLOBAL_DEFAULT) != 0)
        status = error_set(&reason, -ELIBACC, "cannot start libcurl");
}

int curl_load(struct error *e)
{
    pthread_once(&once, load);
    return status ? error_set(e, status, "%s", reason.text) : 0;
}
