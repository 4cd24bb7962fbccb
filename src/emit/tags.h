// tags.h - tags: which are valid, where those of the process come from, how they are written.
// Internal to src/emit.
#ifndef SONDE_EMIT_TAGS_H
#define SONDE_EMIT_TAGS_H

#include "base/str.h"
#include "emit/segment.h"

#include "sonde.h"

bool emit_tag_valid(const struct sonde_tag *tag);

// At most `bytes` of s, without half a UTF-8 character at the end.
struct str emit_cut(struct str s, size_t bytes);

// Writes u16 size, then the bytes; returns the place behind them. s.size < 65536, and the caller
// has made room.
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

// SONDE_TAGS, and `rank` where a launcher gives one (rank.h) and SONDE_TAGS does not. Returns how
// many, at most SEGMENT_TAGS_MAX - 1; *refused is raised by those that are bad.
unsigned emit_tags_of_process(struct sonde_tag tags[SEGMENT_TAGS_MAX], struct emit_tag_store *store,
                              unsigned *refused);

#endif
