#include "http/library.h"

#include "base/lazy_library.h"

#include <errno.h>
#include <pthread.h>

struct microhttpd_functions microhttpd;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int status;
static struct error reason;

static void load(void)
{
#ifdef SONDE_LIBRARY_MICROHTTPD
#define X(name) {"MHD_" #name, &microhttpd.name},
    static const struct lazy_function functions[] = {MICROHTTPD_FUNCTIONS(X)};
    status = lazy_library_load(SONDE_LIBRARY_MICROHTTPD, functions,
                               sizeof functions / sizeof *functions, &reason);
#else
#define X(name) microhttpd.name = MHD_##name;
    MICROHTTPD_FUNCTIONS(X)
#endif
#undef X
}

int microhttpd_load(struct error *e)
{
    pthread_once(&once, load);
    return status ? error_set(e, status, "%s", reason.text) : 0;
}
