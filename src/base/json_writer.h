// json_writer.h - writes JSON text directly into a buffer, without a tree.
//
// The writer inserts commas; the caller calls begin/end, key, value in order. Strings are escaped,
// and bytes that are not UTF-8 become U+FFFD, so that the result is always valid JSON. JSON has no
// NaN and no infinities: json_put_double writes null for them.
//
// The names here differ from those of jansson, the library for reading JSON. So one file may
// include both.
#ifndef SONDE_BASE_JSON_WRITER_H
#define SONDE_BASE_JSON_WRITER_H

#include "base/str.h"

struct json_writer {
    struct buf *out; // not owned
    bool comma;      // the next value needs a comma before it
};

static inline struct json_writer json_to(struct buf *out)
{
    return (struct json_writer){out, false};
}

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_key(struct json_writer *w, struct str key);
void json_put_string(struct json_writer *w, struct str value);
void json_put_double(struct json_writer *w, double value);
void json_put_i64(struct json_writer *w, int64_t value);
void json_put_u64(struct json_writer *w, uint64_t value);
void json_put_bool(struct json_writer *w, bool value);
void json_put_null(struct json_writer *w);
void json_put_raw(struct json_writer *w, struct str json); // `json` is already JSON

// Writes json_key and a value.
void json_key_string(struct json_writer *w, const char *key, struct str value);
void json_key_double(struct json_writer *w, const char *key, double value);
void json_key_i64(struct json_writer *w, const char *key, int64_t value);
void json_key_u64(struct json_writer *w, const char *key, uint64_t value);
void json_key_bool(struct json_writer *w, const char *key, bool value);

enum { NUMBER_TEXT_MAX = 40 };

// Writes the shortest decimal text that reads back as the same double, without a NUL, and returns
// its size. It may overwrite all of `out`. 1 → "1", 0.1 → "0.1", 1e300 → "1e+300", NaN → "NaN",
// infinity → "inf".
size_t number_format(char out[NUMBER_TEXT_MAX], double value);
size_t number_format_i64(char out[NUMBER_TEXT_MAX], int64_t value);
// `value` must be below 10,000; writes leading zeros
void number_format_four_digits(char out[4], unsigned value);

#endif
