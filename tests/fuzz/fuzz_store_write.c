// Opens a changed recording (recording.h) for writing, with recovery; appends, seals, merges and
// closes. Then it reads the closed file.
#include "base/clock.h"
#include "base/log.h"
#include "recording.h"
#include "store/inspect.h"
#include "store/io.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ABANDON = 2, REWRITE = 4, WINDOW = 8, MERGE = 16 }; // flags besides MEND_CHECKSUMS
enum { NEW_ROWS = 60, TICKS = 3 };

static struct recording files[RECORDINGS];
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_setup(LOG_ERROR, "fuzz");
    recordings_make(files);
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/sonde-fuzz-write-%d.sonde", folder, (int)getpid());
    return 0;
}

static void go_on(struct store *s)
{
    uint32_t ids[COLUMNS + 1], set;
    recording_define(s, ids, &set);
    struct store_stats stats;
    store_get_stats(s, &stats);
    double *values = calloc(STORE_SET_SERIES_MAX, sizeof *values);
    for (int64_t t = 0; t < NEW_ROWS; t++) {
        // Some rows go to the sets of the recording, which the changes may have damaged.
        store_append_row(s, (uint32_t)(t % 5 ? set : (uint64_t)t % (stats.sets + 1)),
                         (ROWS + t - 20) * 1000, values);
        store_append(s, ids[t % (COLUMNS + 1)], ROWS + t, (double)t);
    }
    free(values);
    struct store_label label = {STR("k"), STR("v")};
    struct store_event e = {
        .kind = STORE_SPAN, .end_ns = 9, .text = STR("again"), .labels = &label, .label_count = 1};
    store_append_event(s, &e);
    store_seal(s);
    for (int64_t i = 1; i <= TICKS; i++)
        store_tick(s, i * 6 * NS_PER_S);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CHANGE_BYTES)
        return 0;
    const struct recording *f;
    uint8_t flags, *bytes = recording_changed(files, data, size, &f, &flags);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, bytes, f->size) == (ssize_t)f->size;
    close(fd);
    free(bytes);
    struct store *s;
    // Without background syncs, because the creation and removal of their kernel queue takes longer
    // than everything else.
    struct store_io io = store_io_real;
    io.flush_start = NULL;
    io.flush_free = NULL;
    struct store_options o = {.io = &io,
                              .size_limit_bytes = 1 << 20,
                              .memory_limit_bytes = 4 << 20,
                              .window_ns = flags & WINDOW ? 1000000 : 0,
                              .close_budget_ns = flags & MERGE ? 20 * NS_PER_MS : 1,
                              .rewrite_limit_bytes = flags & REWRITE ? 0 : 1};
    if (written && !store_open(path, &o, &s, NULL)) {
        go_on(s);
        if (flags & ABANDON)
            store_abandon(s);
        else
            store_close(s, NULL);
        struct store_inspection in;
        store_inspect(path, &in, NULL);
    }
    unlink(path);
    return 0;
}
