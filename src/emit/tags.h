// tags.h - tags: their validity, the tags of the process, their encoding. Internal to src/emit.
#ifndef SONDE_EMIT_TAGS_H
#define SONDE_EMIT_TAGS_H

#include "base/storable_name.h"
#include "base/str.h"
#include "emit/segment.h"

#include "sonde.h"

// Stores the key and value of a valid tag. Returns false for an invalid one.
static inline bool emit_tag_texts(const struct sonde_tag *tag, struct str *key, struct str *value)
{
    if (!tag->key || !tag->value)
        return false;
    *key = str_of(tag->key);
    *value = str_of(tag->value);
    return storable_name_is(*key, SEGMENT_KEY_MAX) && value->size <= SEGMENT_VALUE_MAX;
}

static inline bool emit_tag_valid(const struct sonde_tag *tag)
{
    struct str key, value;
    return emit_tag_texts(tag, &key, &value);
}

// Returns at most `bytes` of s, without an incomplete UTF-8 character at the end.
struct str emit_cut(struct str s, size_t bytes);

// Works like memcpy(), but without a call for short texts, because most names, keys and values are
// short. Up to 16 bytes are two moves that may overlap.
static inline void emit_copy_text(char *to, const char *from, size_t size)
{
    uint64_t first, last;
    uint32_t first_half, last_half;
    if (size > 2 * sizeof first) {
        memcpy(to, from, size);
    } else if (size >= sizeof first) {
        memcpy(&first, from, sizeof first);
        memcpy(&last, from + size - sizeof last, sizeof last);
        memcpy(to, &first, sizeof first);
        memcpy(to + size - sizeof last, &last, sizeof last);
    } else if (size >= sizeof first_half) {
        memcpy(&first_half, from, sizeof first_half);
        memcpy(&last_half, from + size - sizeof last_half, sizeof last_half);
        memcpy(to, &first_half, sizeof first_half);
        memcpy(to + size - sizeof last_half, &last_half, sizeof last_half);
    } else if (size) {
        to[0] = from[0];
        to[size / 2] = from[size / 2];
        to[size - 1] = from[size - 1];
    }
}

// Writes u16 size, then the bytes, and returns the place after them. The caller has made room;
// s.size < 65536.
static inline char *emit_put_str(char *at, struct str s)
{
    uint16_t size = (uint16_t)s.size;
    memcpy(at, &size, sizeof size);
    emit_copy_text(at + sizeof size, s.data, s.size);
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
