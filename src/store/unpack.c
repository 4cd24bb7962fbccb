// unpack.c - a few idle contexts of zstd serve all threads and recordings of the process. A context
// takes 160 KB, and creating one costs as much as unpacking a small part, so a query of 100
// recordings must not create 100.
#include "store/unpack.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <zstd.h>

enum { IDLE_MAX = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ZSTD_DCtx *idle[IDLE_MAX];
static size_t idle_count;

static ZSTD_DCtx *take(void)
{
    pthread_mutex_lock(&lock);
    ZSTD_DCtx *context = idle_count ? idle[--idle_count] : NULL;
    pthread_mutex_unlock(&lock);
    return context ? context : ZSTD_createDCtx();
}

static void give_back(ZSTD_DCtx *context)
{
    pthread_mutex_lock(&lock);
    bool kept = idle_count < IDLE_MAX;
    if (kept)
        idle[idle_count++] = context;
    pthread_mutex_unlock(&lock);
    if (!kept)
        ZSTD_freeDCtx(context);
}

int unpack(uint8_t *out, size_t size, const uint8_t *frame, size_t frame_size)
{
    ZSTD_DCtx *context = take();
    if (!context)
        return -ENOMEM;
    int rc = ZSTD_decompressDCtx(context, out, size, frame, frame_size) == size ? 0 : -EBADMSG;
    give_back(context);
    return rc;
}
