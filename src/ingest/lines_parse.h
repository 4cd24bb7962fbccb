// lines_parse.h - parses one line of text, in any of four protocols, into items, an annotation or a
// span.
//
//   put loss 1700000000 0.5 rank=3            OpenTSDB: name, time (s, s.fraction, ms), value, tags
//   requests:1|c|@0.1|#path:/x,cached         StatsD and DogStatsD: counters, gauges, timers, sets
//   loss,rank=3 value=0.5 1700000000000000000 Influx: measurement and tags, fields, time in ns
//   loss 0.5 1700000000 rank=3                plain: name, value; then time (as OpenTSDB) and tags,
//                                             if any
//   annotate 1700000000 rank=3 -- rate halved an annotation: optional time and tags, "--", the
//                                             text. In the text and in values of tags, \s \n \r
//                                             \t \\ stand for bytes that end words and lines
//                                             (base/escape.h)
//
//   span begin 5f3a/11c2 rank=3 -- epoch      a span begins: its id and that of its parent, if
//                                             any (hexadecimal); then as an annotation
//   span end 5f3a 1700000000                  a span ends: its id, optional time
//
// The protocol of a line follows from its text: "put ", "annotate ", "span begin " or "span end "
// in front; a ':' and then a '|' in the first word; a '=' in the second word; otherwise plain. The
// parser uses no store, sockets or clock. Lines may be hostile: it reads nothing outside of the
// line, and every count has a limit.
#ifndef SONDE_INGEST_LINES_PARSE_H
#define SONDE_INGEST_LINES_PARSE_H

#include "base/arena.h"
#include "store/store.h"

enum {
    LINE_SIZE_MAX = 65536,
    LINE_ITEMS_MAX = 1024, // fields of an Influx line, or values of a StatsD line
    LINE_ERROR_MAX = 256,
    // for names that join measurement and field, and text without its escapes
    LINE_ARENA_MAX = 1 << 20,
};

enum line_kind {
    LINE_POINT,     // a value at a time
    LINE_COUNT,     // StatsD c: add to a counter
    LINE_GAUGE,     // StatsD g: set a gauge
    LINE_GAUGE_ADD, // StatsD g with a sign: move a gauge
    LINE_MEMBER,    // StatsD s: one more member of a set
};

enum line_span { LINE_NO_SPAN, LINE_SPAN_BEGIN, LINE_SPAN_END };

struct line_item {
    struct str name;
    double value;
    struct str member; // the member that is added to a set
    struct str unit;
    enum line_kind kind;
};

struct line {
    struct line_item items[LINE_ITEMS_MAX];
    size_t item_count;
    struct str annotation; // text of an annotation; empty if the line is not an annotation
    enum line_span span;
    struct str span_name;          // name of a span that begins
    uint64_t span_id, span_parent; // span_parent 0: no parent
    struct store_label labels[STORE_LABELS_MAX];
    size_t label_count;
    bool has_time;
    int64_t t_ns;
    char error[LINE_ERROR_MAX];
    struct arena arena; // set up with line_init
};

void line_init(struct line *l);
void line_free(struct line *l);

// Parses `text` (without newline, at most LINE_SIZE_MAX bytes). Returns true with items, labels and
// time in *l, which point into `text` or the arena and are valid until the next call. A line may
// have no items (an Influx line with only text fields). Returns false with an error for the sender
// in l->error.
bool line_parse(struct line *l, struct str text);

// The parsers of the single protocols. Call line_reset first.
void line_reset(struct line *l);
bool line_parse_statsd(struct line *l, struct str text);
bool line_parse_influx(struct line *l, struct str text);

// Finds the first blank without a backslash before it. Returns the size if there is none.
size_t line_influx_word(struct str text);

// Sets the error message; returns false.
bool line_fail(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Prepares a sender's text for line_fail's "%s": cuts it, and removes bytes that a terminal would
// interpret. The four latest results stay valid.
const char *line_quote(struct str text);

// True if the text is a valid name of a metric or a tag. If not, sets the error message. `what` is
// "name" or "tag".
bool line_check_name(struct line *l, const char *what, struct str name, size_t limit);

bool line_add_label(struct line *l, struct str key, struct str value);
bool line_add_item(struct line *l, const struct line_item *item);

#endif
