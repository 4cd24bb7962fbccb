// lines_split.c - returns complete lines as views of the piece, and copies only lines that were cut
// between two pieces.
#include "ingest/lines_split.h"

static void give(struct lines_split *s, struct str line, size_t size_max, lines_split_fn *each,
                 void *user)
{
    s->number++;
    if (str_ends(line, STR("\r")))
        line.size--;
    bool too_long = line.size > size_max;
    each(user, too_long ? (struct str){NULL, 0} : line, too_long);
}

static void give_too_long(struct lines_split *s, lines_split_fn *each, void *user)
{
    s->number++;
    s->partial.size = 0;
    each(user, (struct str){NULL, 0}, true);
}

void lines_split_feed(struct lines_split *s, struct str piece, size_t size_max,
                      lines_split_fn *each, void *user)
{
    while (piece.size) {
        const char *newline = memchr(piece.data, '\n', piece.size);
        size_t size = newline ? (size_t)(newline - piece.data) : piece.size;
        struct str front = {piece.data, size};
        size_t used = newline ? size + 1 : size;
        piece = str_slice(piece, used, piece.size);
        if (s->skipping) {
            s->skipping = !newline;
            continue;
        }
        if (newline && s->partial.size == 0) {
            give(s, front, size_max, each, user);
            continue;
        }
        // The buffer has one byte more than the limit, for the carriage return.
        bool fits = s->partial.size + front.size <= size_max + 1;
        if (fits)
            buf_add_str(&s->partial, front);
        if (!fits || s->partial.failed) {
            s->skipping = !newline;
            s->partial.failed = false;
            give_too_long(s, each, user);
        } else if (newline) {
            give(s, buf_str(&s->partial), size_max, each, user);
            s->partial.size = 0;
        }
    }
}

void lines_split_end(struct lines_split *s, size_t size_max, lines_split_fn *each, void *user)
{
    if (s->partial.size)
        give(s, buf_str(&s->partial), size_max, each, user);
    s->partial.size = 0;
    s->skipping = false;
}

void lines_split_free(struct lines_split *s)
{
    buf_free(&s->partial);
}
