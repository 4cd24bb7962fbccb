// lines_split.h - cuts a stream of bytes into lines of bounded size.
#ifndef SONDE_INGEST_LINES_SPLIT_H
#define SONDE_INGEST_LINES_SPLIT_H

#include "base/str.h"

struct lines_split {
    struct buf partial; // the beginning of a line whose newline has not arrived yet
    bool skipping;      // in the rest of a line that was too long
    uint64_t number;    // number of the last delivered line, counted from 1
};

// `line` excludes its newline (and a carriage return before it). too_long: the line was dropped
// because it was too long.
typedef void lines_split_fn(void *user, struct str line, bool too_long);

void lines_split_feed(struct lines_split *s, struct str piece, size_t size_max,
                      lines_split_fn *each, void *user);
void lines_split_end(struct lines_split *s, size_t size_max, lines_split_fn *each,
                     void *user); // if the last line has no newline, delivers it now
void lines_split_free(struct lines_split *s);

#endif
