// reading.h - the functions that the files of bench_store share.
#ifndef SONDE_BENCH_STORE_READING_H
#define SONDE_BENCH_STORE_READING_H

#include "base/error.h"
#include "store/read.h"
#include "store/store.h"

// The functions of bench_store.c. An error ends the bench with a message.
void bench_say(const char *metric, double value, const char *unit, const char *peer,
               double peer_value);
void bench_check(int rc, const char *what, const struct error *e);
double bench_seconds_since(int64_t start_ns);
// Returns the path of a store in the bench's folder; it is valid until the next call.
char *bench_path(const char *name);
struct store *bench_open_store(const char *name);
void bench_define(struct store *s, uint32_t count, uint32_t *ids);

// Appends rows of BENCH_SERIES values like those of a node, 100 ms apart. Returns the seconds that
// this took.
enum { BENCH_SERIES = 100 };
double bench_append_rows(struct store *s, int64_t rows);

// The functions of reading.c.
void reading_bare_loops(void); // measures the minimum costs of unpacking and adding
// Measures opening and averages of the store with this name.
void reading_all(const char *name, const char *kind);
// Measures reading 100 series of 3000 points, like a query.
void reading_small(void);
void reading_open_large(void); // measures opening a file of 1 GiB
// Makes a file of 1 GiB, bench_path("large"); returns the seconds of appending.
double reading_write_large(void);

double reading_add_up(const double *values, size_t count); // call reading_bare_loops() first

// The functions of raw_doubles.c. raw_doubles_of() converts the file's cold blocks of sets;
// raw_doubles_average() returns the values per second of unpacking and adding up.
struct raw_doubles *raw_doubles_of(struct store_reader *r);
double raw_doubles_average(struct raw_doubles *d);
double raw_doubles_bytes_per_value(const struct raw_doubles *d);
void raw_doubles_free(struct raw_doubles *d);

// The function of index.c, which measures a million series.
void index_large(void);
#endif
