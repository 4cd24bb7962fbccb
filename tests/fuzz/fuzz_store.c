// Reads a changed recording (recording.h) completely, whatever it contains.
#include "base/log.h"
#include "recording.h"
#include "store/inspect.h"

#include <sys/mman.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct recording files[RECORDINGS];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_setup(LOG_ERROR, "fuzz");
    recordings_make(files);
    return 0;
}

static bool see_event(const struct store_event *e, void *user)
{
    (void)user;
    return e->text.size < SIZE_MAX;
}

static void read_all(const char *name)
{
    struct store_reader *r;
    if (store_reader_open(name, &r, NULL))
        return;
    struct store_snapshot *s = store_snapshot_open(r);
    for (uint32_t id = 0; s && id < store_series_count(s) && id < 100; id++) {
        struct store_series_info info;
        store_series_get(s, id, &info);
        int64_t t, last = INT64_MIN;
        double v;
        store_point_before(s, id, 1000000, &t, &v);
        struct store_cursor *c = store_cursor_open(s, id, INT64_MIN, INT64_MAX);
        struct store_run run;
        while (c && store_cursor_next(c, &run) > 0) {
            const int64_t *times;
            const double *values;
            size_t n;
            if (store_cursor_points(c, &times, &values, &n))
                break;
            for (size_t i = 0; i < n; i++) {
                if (times[i] < last)
                    abort(); // points must come in the order of time
                last = times[i];
            }
        }
        store_cursor_close(c);
    }
    if (s)
        store_events(s, INT64_MIN, INT64_MAX, see_event, NULL);
    store_snapshot_close(s);
    store_reader_close(r);
    struct store_inspection in;
    store_inspect(name, &in, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CHANGE_BYTES)
        return 0;
    const struct recording *f;
    uint8_t flags, *bytes = recording_changed(files, data, size, &f, &flags);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (write(fd, bytes, f->size) == (ssize_t)f->size)
        read_all(name);
    close(fd);
    free(bytes);
    return 0;
}
