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
    *key = (struct str){tag->key, storable_name_length(tag->key)};
    *value = str_of(tag->value);
    return key->size && !key->data[key->size] && key->size <= SEGMENT_KEY_MAX &&
           value->size <= SEGMENT_VALUE_MAX;
}

static inline bool emit_tag_valid(const struct sonde_tag *tag)
{
    struct str key, value;
    return emit_tag_texts(tag, &key, &value);
}

// Returns at most `bytes` of s, without an incomplete UTF-8 character at the end.
struct str emit_cut(struct str s, size_t bytes);

// Returns 1 to 7 bytes as the first bytes of a word whose other bytes are 0. Reads nothing else.
static inline uint64_t emit_short_text(const char *from, size_t size)
{
    uint32_t first, last;
    if (size >= sizeof first) {
        memcpy(&first, from, sizeof first);
        memcpy(&last, from + size - sizeof last, sizeof last);
        return first | (uint64_t)last << 8 * (size - sizeof last);
    }
    const unsigned char *c = (const unsigned char *)from;
    return c[0] | (uint64_t)c[size / 2] << 8 * (size / 2) | (uint64_t)c[size - 1] << 8 * (size - 1);
}

// Room after the last text, because a short text is written as a whole word, and records are padded
// to words.
enum { EMIT_STR_SLACK = 8 };

// Writes u16 size, then the bytes, and returns the place after them. The caller has made room for
// them and the slack; s.size < 65536.
static inline char *emit_put_str(char *at, struct str s)
{
    uint16_t size = (uint16_t)s.size;
    memcpy(at, &size, sizeof size);
    at += sizeof size;
    if (s.size >= sizeof(uint64_t)) {
        memcpy(at, s.data, s.size);
    } else if (s.size) {
        uint64_t word = emit_short_text(s.data, s.size);
        memcpy(at, &word, sizeof word);
    }
    return at + s.size;
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
