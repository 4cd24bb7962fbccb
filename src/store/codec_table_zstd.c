// codec_table_zstd.c - compresses a table to one zstd frame whose blocks end with its streams.
//
// zstd makes one Huffman code per block. Short gaps, long numbers and noise need different codes,
// so each stream gets its own blocks; the window spans them. The result is an ordinary frame.
#include "store/codec_table_parts.h"

#include <errno.h>
#include <zstd.h>

size_t codec_table_compress_bound(size_t size)
{
    enum { BLOCK_HEADER = 3, FLUSHES = STREAMS + 1 };
    return ZSTD_compressBound(size) + (size_t)FLUSHES * BLOCK_HEADER;
}

// Most streams hold tokens of one byte, and their Huffman codes have two or three bits. A repeat of
// a few bytes takes more bits than their codes. zstd compares the two from level PARSER_WEIGHS on;
// below, it takes every repeat that is long enough.
static void set_level(ZSTD_CCtx *context, int level)
{
    enum { PARSER_WEIGHS = 16, REPEAT_MIN = 7, HASH_BITS_FEW = 6 };
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level ? level : 1);
    if (level < PARSER_WEIGHS)
        ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, REPEAT_MIN);
    if (level == CODEC_TABLE_QUICK) {
        ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, ZSTD_fast);
        ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, HASH_BITS_FEW);
    }
}

size_t codec_table_compress(const uint8_t *table, size_t size, int level, uint8_t *out)
{
    size_t ends[STREAMS + 1], n_ends = codec_table_ends(table, size, ends);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (context == NULL || n_ends == 0) {
        ZSTD_freeCCtx(context);
        return 0;
    }
    set_level(context, level);
    ZSTD_CCtx_setPledgedSrcSize(context, size);
    ZSTD_inBuffer in = {table, 0, 0};
    ZSTD_outBuffer to = {out, codec_table_compress_bound(size), 0};
    size_t left = 0;
    for (size_t i = 0; i < n_ends && left == 0; i++) {
        if (ends[i] == in.size && i + 1 < n_ends)
            continue;
        in.size = ends[i];
        left = ZSTD_compressStream2(context, &to, &in, i + 1 < n_ends ? ZSTD_e_flush : ZSTD_e_end);
    }
    ZSTD_freeCCtx(context);
    return left == 0 ? to.pos : 0; // more is an error, because the output is large enough
}
