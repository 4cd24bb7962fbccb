// fuzz_store.c - a recording that somebody has changed: read whole, whatever is in it.
//
// The input is a list of changes { u8 which file, u8 flags, u24 offset, u8 new byte } to one of two sound files, one closed and one left
// by a dead writer. With the first flag the checksums are made right again afterwards, so that what lies behind them is reached.
#include "base/hash.h"
#include "base/log.h"
#include "store/block.h"
#include "store/inspect.h"
#include "store/layout.h"
#include "store/lock.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 2, CHANGE_BYTES = 6, ROWS = 2500, COLUMNS = 3 };

static struct file {
    uint8_t *bytes;
    size_t size;
} files[FILES];
static char path[64];

static void make(struct file *f, bool closed)
{
    struct store *s;
    struct store_options o = {.size_limit_bytes = 1 << 20};
    if (store_open(path, &o, &s, NULL))
        abort();
    struct store_metric m = {.name = STR("m")};
    uint32_t metric, ids[COLUMNS + 1], set;
    store_define_metric(s, &m, &metric);
    for (uint32_t i = 0; i <= COLUMNS; i++) {
        char text[4] = {(char)('a' + i)};
        struct store_label label = {STR("n"), str_of(text)};
        store_define_series(s, metric, &label, 1, &ids[i]);
    }
    store_define_set(s, ids, COLUMNS, &set);
    for (int64_t t = 0; t < ROWS; t++) {
        double v[COLUMNS] = {(double)(t % 50), t % 7 ? (double)t / 3 : store_missing(), 1};
        store_append_row(s, set, t * 1000, v);
        store_append(s, ids[COLUMNS], t, (double)t);
    }
    struct store_event e = {.kind = STORE_SPAN, .end_ns = 9, .text = STR("span"), .id = 1};
    store_append_event(s, &e);
    if (closed)
        store_close(s, NULL);
    else
        store_abandon(s);
    int fd = open(path, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        abort();
    f->size = (size_t)st.st_size;
    f->bytes = malloc(f->size);
    if (pread(fd, f->bytes, f->size, 0) != st.st_size)
        abort();
    close(fd);
    unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_setup(LOG_ERROR, "fuzz");
    snprintf(path, sizeof path, "/tmp/sonde-fuzz-%d.sonde", (int)getpid());
    for (int i = 0; i < FILES; i++)
        make(&files[i], i == 0);
    return 0;
}

// Wherever a block begins in the sound file, if it still looks like one.
static void mend_blocks(const struct file *f, uint8_t *bytes)
{
    for (size_t at = 0; at + sizeof(struct block_header) <= f->size; at += 8) {
        struct block_header h;
        memcpy(&h, f->bytes + at, sizeof h);
        if (h.magic != BLOCK_MAGIC)
            continue;
        memcpy(&h, bytes + at, sizeof h);
        uint64_t end = at + sizeof h + (uint64_t)h.directory_bytes + h.data_bytes;
        if (end <= f->size) {
            h.directory_crc = crc32c(0, bytes + at + sizeof h, h.directory_bytes);
            h.data_crc = crc32c(0, bytes + at + sizeof h + h.directory_bytes, h.data_bytes);
        }
        h.head_crc = crc32c(0, (uint8_t *)&h + 8, sizeof h - 8);
        memcpy(bytes + at, &h, sizeof h);
    }
}

static void mend(const struct file *f, uint8_t *bytes)
{
    mend_blocks(f, bytes);
    struct superblock sb;
    memcpy(&sb, bytes, sizeof sb);
    if (sb.table_offset <= f->size && sb.table_count <= (f->size - sb.table_offset) / sizeof(struct segment_entry))
        for (uint32_t i = 0; i < sb.table_count; i++) {
            struct segment_entry e;
            uint8_t *at = bytes + sb.table_offset + i * sizeof e;
            memcpy(&e, at, sizeof e);
            e.check = crc32c(crc32c(0, &e.kind, 12), &e.offset, 24);
            memcpy(at, &e, sizeof e);
        }
    sb.fixed_crc = crc32c(0, &sb, offsetof(struct superblock, fixed_crc));
    memcpy(bytes, &sb, sizeof sb);
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
                    abort(); // whatever is in the file: in order of time
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
    const struct file *f = &files[data[0] % FILES];
    uint8_t *bytes = malloc(f->size);
    memcpy(bytes, f->bytes, f->size);
    bool mended = data[1] & 1;
    for (; size >= CHANGE_BYTES; data += CHANGE_BYTES, size -= CHANGE_BYTES)
        bytes[(data[2] | (size_t)data[3] << 8 | (size_t)data[4] << 16) % f->size] = data[5];
    if (mended)
        mend(f, bytes);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (write(fd, bytes, f->size) == (ssize_t)f->size) {
        read_all(name);
        struct store *s;
        if (data[-CHANGE_BYTES + 1] & 2 && !store_open(name, NULL, &s, NULL))
            store_abandon(s);
    }
    close(fd);
    free(bytes);
    return 0;
}
