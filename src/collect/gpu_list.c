#include "collect/gpu_list.h"

#include "base/log.h"
#include "collect/gpu_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct listing {
    int to;
    char root[1];
};

// CUDA numbers GPUs in an order of its own, so it gets their UUIDs; the others number them like
// their management libraries.
static const char *const variables[GPU_MAKES] = {
    [GPU_NVIDIA] = "CUDA_VISIBLE_DEVICES",
    [GPU_AMD] = "ROCR_VISIBLE_DEVICES",
    [GPU_INTEL] = "ZE_AFFINITY_MASK",
};

static void say(const struct listing *l, unsigned index, const char *variable, struct str value)
{
    char line[GPU_LIST_LINE_MAX];
    int size = snprintf(line, sizeof line, "%u %s=%.*s\n", index, variable, STR_ARG(value));
    if (size >= (int)sizeof line)
        log_warning("%s: '%.*s' is too long", GPU_LIST_VIRTUAL, STR_ARG(value));
    else if (write(l->to, line, (size_t)size) != size)
        log_debug("no process waits for the list of GPUs");
}

static void list_virtual(const struct listing *l, const char *words)
{
    struct str rest = str_of(words);
    for (unsigned i = 0; i < GPU_LIST_MAX && rest.size;) {
        struct str word = str_trim(str_cut(&rest, ','));
        if (word.size)
            say(l, i++, "SONDE_PROBE_DEVICE", word);
    }
}

static void list(const struct listing *l, enum gpu_make make)
{
    void *library;
    unsigned count;
    char why[GPU_WHY_MAX];
    const struct gpu_backend *backend =
        gpu_find_backend(&gpu_vendors[make], l->root, &library, &count, why);
    if (!backend)
        return;
    bool lost = false;
    for (unsigned i = 0; i < count && i < GPU_LIST_MAX; i++) {
        struct gpu_device devices[1 + GPU_PARTS_MAX] = {0};
        size_t opened = 0;
        struct gpu_answer answer = backend->open(library, i, devices, &opened);
        lost = lost || answer.lost;
        char number[16];
        snprintf(number, sizeof number, "%u", i);
        if (opened > 0 && !answer.lost)
            say(l, i, variables[make],
                str_of(make == GPU_NVIDIA && devices[0].uuid[0] ? devices[0].uuid : number));
        for (size_t d = 0; d < opened; d++)
            backend->close(library, &devices[d]);
    }
    backend->stop(library, lost);
}

static void *run(void *user)
{
    struct listing *l = user;
    const char *virtual = getenv(GPU_LIST_VIRTUAL);
    if (virtual)
        list_virtual(l, virtual);
    for (enum gpu_make make = 0; make < GPU_MAKES && !virtual; make++)
        list(l, make);
    close(l->to);
    free(l);
    return NULL;
}

int gpu_list_open(const char *root)
{
    int ends[2];
    struct listing *l = calloc(1, sizeof *l + strlen(root));
    if (!l)
        return -ENOMEM;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        free(l);
        return -errno;
    }
    l->to = ends[1];
    memcpy(l->root, root, strlen(root) + 1);
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    // detached, because it may get stuck
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attributes, run, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!failed)
        return ends[0];
    close(ends[0]);
    close(ends[1]);
    free(l);
    return -failed;
}
