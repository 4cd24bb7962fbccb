#include "client/curl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

struct curl_functions curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int status;
static struct error reason;

#ifdef SONDE_LIBCURL // the name of the library

static int find_functions(void)
{
    void *library = dlopen(SONDE_LIBCURL, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(&reason, -ELIBACC, "cannot load libcurl: %s", dlerror());
#define X(name)                                                       \
    curl.name = (__typeof__(curl.name))dlsym(library, "curl_" #name); \
    if (!curl.name)                                                   \
        return error_set(&reason, -ELIBACC, "%s lacks curl_" #name, SONDE_LIBCURL);
    CURL_FUNCTIONS(X)
#undef X
    return 0;
}

#else

static int find_functions(void)
{
#define X(name) curl.name = curl_##name;
    CURL_FUNCTIONS(X)
#undef X
    return 0;
}

#endif

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
