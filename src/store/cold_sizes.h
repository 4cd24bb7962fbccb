// cold_sizes.h - the sizes of cold blocks and their stripes. Merges (merge.c) and imports
// (direct.c) include it.
#ifndef SONDE_STORE_COLD_SIZES_H
#define SONDE_STORE_COLD_SIZES_H

#include "store/codec_table.h"
#include "store/cold.h"
#include "store/writer.h"

// A reader that needs a tenth of a cold block's time range still decodes complete columns. With
// dense values (many bytes a value), decoding takes most of the time of an answer. So a cold block
// of dense values has fewer rows, and long series of single points are cut into stripes. A column's
// entry and its share of a frame take some 40 bytes; at half a byte a value, that is 2 % of such a
// block or stripe. Values that take fewer bytes stay in long blocks. The last cold block shows how
// many bytes a value takes. Hot blocks do not show it: columns that can be computed from other
// columns become small only in a cold block.
enum {
    MERGE_ROWS = 8192,
    MERGE_POINTS = 4 * TAIL_POINTS_MAX,
    DENSE_VALUES_A_BYTE = 2, // values are dense if a byte holds fewer than this
    DENSE_BYTES = 256 << 10, // bytes of hot blocks in one merge of dense values
    STRIPE_POINTS = 4096,    // mean number of points of a series in a stripe
};

// The levels and the limits of a part. A part takes some 3 ms in a live merge. In a closing merge
// it is as large as a part can be.
static const struct cold_effort efforts[] = {
    [MERGE_LIVE] = {CODEC_TABLE_QUICK, 3, 48 << 10, 256},
    [MERGE_CLOSING] = {16, 16, 4 << 20, SIZE_MAX},
    [MERGE_HURRIED] = {CODEC_TABLE_QUICK, 9, 4 << 20, SIZE_MAX},
};

#endif
