// thaw.c - decodes hot blocks to rows and points, for merging.
#include "store/thaw.h"
#include "store/one_each.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int decode_column(const struct block_header *h, const uint8_t *block, uint32_t column,
                         double *present, double *out)
{
    struct column_entry stored;
    memcpy(&stored, block + sizeof *h + 8 + column * sizeof stored, sizeof stored);
    struct block_entry e;
    int rc = block_entry_of_column(h, &stored, &e);
    if (!rc && e.count == h->rows)
        return block_decode_values(
            h, &e,
            (struct str){(const char *)block + sizeof *h + h->directory_bytes + e.offset, e.size},
            out);
    for (uint32_t r = 0; r < h->rows; r++)
        out[r] = store_missing();
    if (rc == -ENOENT)
        return 0;
    if (rc)
        return rc;
    const uint8_t *at = block + sizeof *h + h->directory_bytes + e.offset;
    rc = block_decode_values(h, &e, (struct str){(const char *)at, e.size}, present);
    for (uint32_t r = 0, n = 0; !rc && r < h->rows && n < e.count; r++)
        if (at[r / 8] >> r % 8 & 1)
            out[r] = present[n++];
    return rc;
}

int thaw_rows(const struct block_header *h, const uint8_t *block, int64_t *t_ns, double *values,
              size_t stride)
{
    uint32_t time_bytes;
    memcpy(&time_bytes, block + sizeof *h, sizeof time_bytes);
    if (time_bytes > h->data_bytes)
        return -EBADMSG;
    double *present = malloc(CODEC_VALUES_MAX * sizeof *present);
    int rc = present ? codec_decode_times(block + sizeof *h + h->directory_bytes, time_bytes,
                                          h->rows, t_ns)
                     : -ENOMEM;
    for (uint32_t c = 0; !rc && c < h->columns; c++)
        rc = decode_column(h, block, c, present, values + c * stride);
    free(present);
    return rc;
}

int thaw_points(const struct block_header *h, const uint8_t *block, struct point_record *out)
{
    const uint8_t *directory = block + sizeof *h, *data = directory + h->directory_bytes;
    if (h->flags & BLOCK_ONE_EACH)
        return one_each_points(h, directory, out);
    int64_t *t = malloc(CODEC_VALUES_MAX * sizeof *t);
    double *v = malloc(CODEC_VALUES_MAX * sizeof *v);
    int rc = t && v ? 0 : -ENOMEM;
    size_t at = 0;
    for (uint32_t g = 0; !rc && g < h->columns; g++) {
        uint32_t series, range[2];
        memcpy(&series, directory + 4 * (size_t)g, sizeof series);
        memcpy(range, directory + 4 * ((size_t)h->columns + g), sizeof range);
        struct str record = {(const char *)data + range[0], range[1] - range[0]};
        struct block_entry e = {0};
        rc = range[0] > range[1] || range[1] > h->data_bytes
                 ? -EBADMSG
                 : block_entry_of_group(h, series, record, &e);
        if (!rc && e.count > h->rows - at)
            rc = -EBADMSG;
        if (!rc)
            rc = block_decode_group_times(h, &e, record, t);
        if (!rc)
            rc = block_decode_values(h, &e, record, v);
        for (uint32_t i = 0; !rc && i < e.count; i++)
            out[at++] = (struct point_record){series, 0, t[i], v[i]};
    }
    free(t);
    free(v);
    return rc ? rc : at == h->rows ? 0 : -EBADMSG;
}
