// lines_parse.h - one line of text, in any of four protocols, as items; or an annotation.
//
//   put loss 1700000000 0.5 rank=3            OpenTSDB: name, time (s, s.fraction or ms), value, tags
//   requests:1|c|@0.1|#path:/x,cached         StatsD and DogStatsD: counters, gauges, timers, sets
//   loss,rank=3 value=0.5 1700000000000000000 Influx: measurement and tags, fields, time in ns
//   loss 0.5 1700000000 rank=3                plain: name, value, time if any (as OpenTSDB), tags if any
//   annotate 1700000000 rank=3 -- rate halved an annotation: time if any, tags if any, "--", the text. In the text and in the values of its
//                                             tags \s \n \r \t \\ stand for bytes that end words and lines (base/escape.h)
//
// Told apart line by line: "put " or "annotate " in front; a ':' and then a '|' in the first word;
// a '=' in the second word; else plain. Pure: knows no store, no sockets, no clock. The line is
// hostile; nothing outside of it is read, and every count has a limit.
#ifndef SONDE_INGEST_LINES_PARSE_H
#define SONDE_INGEST_LINES_PARSE_H

#include "base/arena.h"
#include "store/store.h"

enum {
    LINE_SIZE_MAX = 65536,
    LINE_ITEMS_MAX = 1024, // fields of an Influx line, values of a StatsD line
    LINE_ERROR_MAX = 256,
    LINE_ARENA_MAX = 1 << 20, // names made of measurement and field, text without its escapes
};

enum line_kind {
    LINE_POINT,     // a value at a time
    LINE_COUNT,     // StatsD c: add to a counter
    LINE_GAUGE,     // StatsD g: set a gauge
    LINE_GAUGE_ADD, // StatsD g with a sign: move a gauge
    LINE_MEMBER,    // StatsD s: one more member of a set
};

struct line_item {
    struct str name;
    double value;
    struct str member; // of a set
    struct str unit;
    enum line_kind kind;
};

struct line {
    struct line_item items[LINE_ITEMS_MAX];
    size_t item_count;
    struct str annotation; // its text; empty if the line is no annotation
    struct store_label labels[STORE_LABELS_MAX];
    size_t label_count;
    bool has_time;
    int64_t t_ns;
    char error[LINE_ERROR_MAX];
    struct arena arena; // set up with line_init
};

void line_init(struct line *l);
void line_free(struct line *l);

// Takes `text` (no newline in it, at most LINE_SIZE_MAX bytes) apart. True: the items, labels and
// time in *l, which are views of `text` or of the arena and hold until the next call. There may be
// no items (an Influx line with nothing but text fields). False: l->error says what is wrong, in
// words for the sender.
bool line_parse(struct line *l, struct str text);

// For the files of the single protocols.
bool line_parse_statsd(struct line *l, struct str text);
bool line_parse_influx(struct line *l, struct str text);

// The place of the first blank that is not behind a backslash; the size if there is none.
size_t line_influx_word(struct str text);

// Sets the error message; returns false.
bool line_fail(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Text of the sender's for line_fail's "%s": cut, and without bytes that a terminal would act on.
// Four can be in use at once.
const char *line_quote(struct str text);

// Whether the text can name a metric or a tag; sets the error if not. `what`: "name", "tag".
bool line_check_name(struct line *l, const char *what, struct str name, size_t limit);

bool line_add_label(struct line *l, struct str key, struct str value);
bool line_add_item(struct line *l, const struct line_item *item);

#endif
