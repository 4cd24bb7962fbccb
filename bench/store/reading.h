// reading.h - the common part of the files about reading in bench_store.
#ifndef SONDE_BENCH_STORE_READING_H
#define SONDE_BENCH_STORE_READING_H

#include "base/error.h"
#include "store/read.h"
#include "store/store.h"

// In bench_store.c. An error ends the bench with a message.
void bench_say(const char *metric, double value, const char *unit, const char *peer,
               double peer_value);
void bench_check(int rc, const char *what, const struct error *e);
double bench_seconds_since(int64_t start_ns);
// path of a store in the bench's folder; valid until the next call
char *bench_path(const char *name);
struct store *bench_open_store(const char *name);
void bench_define(struct store *s, uint32_t count, uint32_t *ids);

// Appends rows of BENCH_SERIES values like a node's, 100 ms apart. Returns the seconds that this
// took.
enum { BENCH_SERIES = 100 };
double bench_append_rows(struct store *s, int64_t rows);

// reading.c
void reading_bare_loops(void); // the minimum cost of each
// for the store of that name: opening, averages
void reading_all(const char *name, const char *kind);
// 100 series × 3000 points, like a query
void reading_small(void);
void reading_open_large(void); // a file of 1 GiB
// makes that file, bench_path("large"); returns the seconds of appending
double reading_write_large(void);

double reading_add_up(const double *values, size_t count); // call it after reading_bare_loops

// In raw_doubles.c. Converts the file's cold blocks of sets; returns values per second of unpacking
// and adding up.
struct raw_doubles *raw_doubles_of(struct store_reader *r);
double raw_doubles_average(struct raw_doubles *d);
double raw_doubles_bytes_per_value(const struct raw_doubles *d);
void raw_doubles_free(struct raw_doubles *d);

// index.c
void index_large(void); // a million series
#endif
