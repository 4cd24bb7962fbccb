// two_files.h - two files of a node, and whether they have the same points and events.
#ifndef SONDE_TEST_ASK_TWO_FILES_H
#define SONDE_TEST_ASK_TWO_FILES_H

#include "ask/copy_sums.h"
#include "unit/wire/world.h"

enum { POINTS = 100000 };

struct points {
    struct store_cursor *cursor;
    const int64_t *t;
    const double *v;
    size_t left;
};

void append(struct world *w, int64_t count);

void span(struct world *w, uint64_t id, int64_t start_ns, int64_t end_ns);

int set_up(void **state);

struct ask_copy_file copy_since(struct world *w, int64_t from_ns);

struct ask_copy_file copy(struct world *w);

// Returns the number of points.
uint64_t same_since(struct world *w, int64_t from_ns);

uint64_t same(struct world *w);

int hold_anything(void *user, size_t bytes, struct error *e);

void release_anything(void *user, size_t bytes);

#endif
