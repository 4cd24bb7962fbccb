// recording.h - makes valid recordings and changes them for the fuzz targets; on request, it
// corrects their checksums afterwards.
//
// The input of a target is a list of changes { u8 recording, u8 flags, u24 place, u8 new byte }.
// A place counts only the 64-byte lines of the recording that are not empty, because most of a live
// file is unwritten space.
#ifndef SONDE_TESTS_FUZZ_RECORDING_H
#define SONDE_TESTS_FUZZ_RECORDING_H

#include "base/hash.h"
#include "store/block.h"
#include "store/catalog.h"
#include "store/layout.h"
#include "store/lock.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDINGS = 3, CHANGE_BYTES = 6, ROWS = 2500, COLUMNS = 3, LINE_BYTES = 64, SINGLES = 20 };
enum { MEND_CHECKSUMS = 1 }; // flags

enum recording_kind { RECORDING_CLOSED, RECORDING_KILLED, RECORDING_CLOSED_IN_PLACE };

struct recording {
    uint8_t *bytes;
    size_t size;
    uint32_t *lines; // the lines that are not empty
    size_t line_count;
};

// Defines a metric with COLUMNS + 1 series, of which all but the last are in a set. A definition
// that a damaged store refuses has the id 0.
static inline void recording_define(struct store *s, uint32_t ids[COLUMNS + 1], uint32_t *set)
{
    struct store_metric m = {.name = STR("m")};
    uint32_t metric = 0;
    store_define_metric(s, &m, &metric);
    for (uint32_t i = 0; i <= COLUMNS; i++) {
        char text[4] = {(char)('a' + i)};
        struct store_label label = {STR("n"), str_of(text)};
        ids[i] = 0;
        store_define_series(s, metric, &label, 1, &ids[i]);
    }
    *set = 0;
    store_define_set(s, ids, COLUMNS, set);
}

static inline void recording_fill(struct store *s)
{
    uint32_t ids[COLUMNS + 1], set;
    recording_define(s, ids, &set);
    for (int64_t t = 0; t < ROWS; t++) {
        double v[COLUMNS] = {(double)(t % 50), t % 7 ? (double)t / 3 : store_missing(), 1};
        store_append_row(s, set, t * 1000, v);
        store_append(s, ids[COLUMNS], t, (double)t);
        if (t == ROWS / 2)
            store_sync(s, NULL); // writes the checksums of synced data into the extents' entries
    }
    // a block with one point of each series
    store_seal(s);
    for (unsigned i = 0; i < SINGLES; i++) {
        char text[4] = {'s', (char)('a' + i)};
        struct store_label label = {STR("n"), str_of(text)};
        uint32_t id = 0;
        store_define_series(s, 0, &label, 1, &id);
        store_append(s, id, ROWS + (int64_t)i, (double)i);
    }
    store_seal(s);
    struct store_event e = {.kind = STORE_SPAN, .end_ns = 9, .text = STR("span"), .id = 1};
    store_append_event(s, &e);
}

static inline void recording_make(struct recording *f, enum recording_kind kind, const char *path)
{
    struct store *s;
    struct store_options o = {.size_limit_bytes = 1 << 20,
                              .rewrite_limit_bytes = kind == RECORDING_CLOSED ? 0 : 1};
    if (store_open(path, &o, &s, NULL))
        abort();
    recording_fill(s);
    if (kind == RECORDING_KILLED)
        store_abandon(s);
    else
        store_close(s, NULL);
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
    f->lines = malloc((f->size / LINE_BYTES + 1) * sizeof *f->lines);
    for (size_t at = 0; at + LINE_BYTES <= f->size; at += LINE_BYTES) {
        static const uint8_t nothing[LINE_BYTES];
        if (memcmp(f->bytes + at, nothing, LINE_BYTES))
            f->lines[f->line_count++] = (uint32_t)at;
    }
}

static inline void recordings_make(struct recording files[RECORDINGS])
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/sonde-fuzz-%d.sonde", (int)getpid());
    for (int i = 0; i < RECORDINGS; i++)
        recording_make(&files[i], (enum recording_kind)i, path);
}

// Corrects the checksum of each block of the valid file that still looks like a block.
static inline void mend_blocks(const struct recording *f, uint8_t *bytes)
{
    for (size_t at = 0; at + sizeof(struct block_header) <= f->size; at += 8) {
        struct block_header h;
        if (memcmp(f->bytes + at, &(uint32_t){BLOCK_MAGIC}, sizeof(uint32_t)))
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

// Corrects the checksums of the catalog's consecutive entries, { type, varint size, payload, crc }.
// Uses the sizes in the changed bytes.
static inline void mend_catalog(uint8_t *at, size_t size)
{
    struct bytes in = bytes_of(at, size);
    while (bytes_left(&in)) {
        const uint8_t *start = in.at;
        bytes_u8(&in);
        bytes_short(&in);
        if (in.failed || bytes_left(&in) < sizeof(uint32_t))
            return;
        uint32_t crc = crc32c(0, start, (size_t)(in.at - start));
        memcpy((uint8_t *)(uintptr_t)in.at, &crc, sizeof crc);
        bytes_u32(&in);
    }
}

static inline void mend_events(uint8_t *at, size_t size)
{
    uint32_t head[2];
    while (size >= sizeof head) {
        memcpy(head, at, sizeof head);
        if (head[0] < sizeof head || head[0] > size)
            return;
        head[1] = crc32c(0, at + sizeof head, head[0] - sizeof head);
        memcpy(at, head, sizeof head);
        at += head[0];
        size -= head[0];
    }
}

// Corrects the checksums of an extent. `sound` is the original entry, which has the width of the
// rows in the tail.
static inline void mend_extent(const struct recording *f, uint8_t *bytes, struct extent_entry *e,
                               const struct extent_entry *sound)
{
    bool inside = e->offset <= f->size && e->size <= f->size - e->offset;
    uint8_t *at = bytes + (inside ? e->offset : 0);
    uint64_t used = e->used < e->size ? e->used : e->size;
    if (inside && e->kind == EXTENT_CATALOG)
        mend_catalog(at, used);
    if (inside && e->kind == EXTENT_EVENT_TAIL)
        mend_events(at, used);
    if (inside && e->kind == EXTENT_CATALOG_PACKED && used >= 16) {
        uint32_t head[2];
        memcpy(head, at + 8, sizeof head);
        if (head[1] <= used - 16) {
            head[0] = crc32c(0, at + 16, head[1]);
            memcpy(at + 8, head, sizeof head);
        }
    }
    uint64_t unit = sound->kind == EXTENT_SET_TAIL     ? (COLUMNS + 1) * sizeof(double)
                    : sound->kind == EXTENT_POINT_TAIL ? sizeof(struct point_record)
                                                       : 1;
    for (int i = 0; inside && i < 2; i++)
        if (sound->kind >= EXTENT_SET_TAIL && sound->kind <= EXTENT_EVENT_TAIL &&
            e->synced[i].used <= e->size / unit)
            e->synced[i].crc = crc32c(0, at, e->synced[i].used * unit);
    e->check = crc32c(crc32c(0, &e->kind, 12), &e->offset, 24);
}

static inline void recording_mend(const struct recording *f, uint8_t *bytes)
{
    mend_blocks(f, bytes);
    struct superblock sb;
    memcpy(&sb, bytes, sizeof sb);
    if (sb.table_offset <= f->size &&
        sb.table_count <= (f->size - sb.table_offset) / sizeof(struct extent_entry))
        for (uint32_t i = 0; i < sb.table_count; i++) {
            struct extent_entry e, sound;
            uint64_t at = sb.table_offset + i * sizeof e;
            memcpy(&e, bytes + at, sizeof e);
            memcpy(&sound, f->bytes + at, sizeof sound);
            mend_extent(f, bytes, &e, &sound);
            memcpy(bytes + at, &e, sizeof e);
        }
    memcpy(&sb, bytes, sizeof sb);
    sb.fixed_crc = crc32c(0, &sb, offsetof(struct superblock, fixed_crc));
    memcpy(bytes, &sb, sizeof sb);
}

// Returns a changed, malloc'ed copy of the recording that the input selects, and sets *flags to the
// input's flags.
static inline uint8_t *recording_changed(const struct recording files[RECORDINGS],
                                         const uint8_t *data, size_t size,
                                         const struct recording **which, uint8_t *flags)
{
    const struct recording *f = *which = &files[data[0] % RECORDINGS];
    uint8_t *bytes = malloc(f->size);
    memcpy(bytes, f->bytes, f->size);
    *flags = data[1];
    for (; size >= CHANGE_BYTES; data += CHANGE_BYTES, size -= CHANGE_BYTES) {
        size_t place =
            (data[2] | (size_t)data[3] << 8 | (size_t)data[4] << 16) % (f->line_count * LINE_BYTES);
        bytes[f->lines[place / LINE_BYTES] + place % LINE_BYTES] = data[5];
    }
    if (*flags & MEND_CHECKSUMS)
        recording_mend(f, bytes);
    return bytes;
}

#endif
