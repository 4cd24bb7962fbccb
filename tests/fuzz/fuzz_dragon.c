// Imports a malicious database of Dragon's telemetry: it is refused with a reason, or becomes
// recordings.
#include "launch/folder.h"
#include "store/import_dragon.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64], recordings[80];

static bool own_metric(struct str name, struct store_metric *m)
{
    (void)name;
    (void)m;
    return false;
}

static void made(const struct import_dragon_recording *r, void *user)
{
    (void)user;
    (void)r;
}

static void remove_folder(void)
{
    folder_remove(folder, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const char *paths[] = {path};
    struct import_dragon_options o = {.paths = paths,
                                      .count = 1,
                                      .folder = recordings,
                                      .host = "host",
                                      .own_metric = own_metric,
                                      .made = made};
    struct error e = {0};
    if (!folder[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%.40s/fuzz-dragon-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(folder) || atexit(remove_folder))
            abort();
        snprintf(recordings, sizeof recordings, "%s/rec", folder);
    }
    int fd = memfd_create("file", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || mkdir(recordings, 0700) < 0)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (import_dragon(&o, &e) && !e.text[0])
        abort();
    close(fd);
    if (folder_remove(recordings, &e))
        abort();
    return 0;
}
