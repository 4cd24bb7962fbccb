// tags.h - tags: their validity, the tags of the process, their encoding. Internal to src/emit.
#ifndef SONDE_EMIT_TAGS_H
#define SONDE_EMIT_TAGS_H

#include "base/str.h"
#include "emit/segment.h"

#include "sonde.h"

bool emit_tag_valid(const struct sonde_tag *tag);

// At most `bytes` of s, without an incomplete UTF-8 character at the end.
struct str emit_cut(struct str s, size_t bytes);

// Writes u16 size, then the bytes, and returns the place behind them. The caller has made room;
// s.size < 65536.
static inline char *emit_put_str(char *at, struct str s)
{
    uint16_t size = (uint16_t)s.size;
    memcpy(at, &size, sizeof size);
    memcpy(at + sizeof size, s.data, s.size);
    return at + sizeof size + s.size;
}

enum { EMIT_TAG_TEXT_MAX = 16384 };

struct emit_tag_store {
    char text[EMIT_TAG_TEXT_MAX]; // the tags point into this text
};

// Reads SONDE_TAGS, and adds `rank` if only a launcher gives one (rank.h). Returns the number of
// tags, at most SEGMENT_TAGS_MAX - 1; adds the number of bad tags to *refused.
unsigned emit_tags_of_process(struct sonde_tag tags[SEGMENT_TAGS_MAX], struct emit_tag_store *store,
                              unsigned *refused);

#endif
