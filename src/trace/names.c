// names.c - tables of names, open hash tables that only grow.
#include "trace/names.h"
#include "trace/counter.h"
#include "trace/spin.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(NAMES_SLOTS >= 2 * NAMES_MAX && (NAMES_SLOTS & (NAMES_SLOTS - 1)) == 0,
               "a search always ends");

static spin adding;

static size_t slot_of(const char *name, size_t size, const char *second)
{
    uint64_t hash = (uintptr_t)second;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static bool is(const char *known, const struct name_cells *cells, const char *name, size_t size,
               const char *second)
{
    return cells->second == second && strncmp(known, name, size) == 0 && !known[size];
}

static void define(const struct name_table *table, struct name_cells *cells, const char *name)
{
    const struct sonde_tag tags[] = {{table->tag, name}, {table->second_tag, cells->second}};
    for (size_t i = 0; i < NAMES_METRICS && table->metrics[i].name; i++) {
        const struct name_metric *m = &table->metrics[i];
        cells->metrics[i] = series_define(m->name, m->unit, m->help, m->kind, tags,
                                          table->second_tag && cells->second ? 2 : 1);
    }
}

static struct name_cells *add_locked(struct name_table *table, struct name_cells *cells,
                                     const char *name, size_t size, const char *second)
{
    unsigned count = atomic_load_explicit(&table->count, memory_order_relaxed);
    char *copy = count < NAMES_MAX ? strndup(name, size) : NULL;
    if (copy) {
        cells->second = second;
        define(table, cells, copy);
        atomic_store_explicit(&table->count, count + 1, memory_order_relaxed);
        // Release: a thread that reads the name also reads the handles.
        atomic_store_explicit(&cells->name, copy, memory_order_release);
        return cells;
    }
    define(table, &table->other, "other");
    if (count == NAMES_MAX)
        // Release: a thread that reads this count also reads the handles of `other`.
        atomic_store_explicit(&table->count, count + 1, memory_order_release);
    return &table->other;
}

__attribute__((noinline, cold)) static struct name_cells *add(struct name_table *table,
                                                              const char *name, size_t size,
                                                              const char *second)
{
    struct name_cells *found = NULL;
    // Acquire: a count above NAMES_MAX comes with the handles of `other`.
    if (atomic_load_explicit(&table->count, memory_order_acquire) > NAMES_MAX)
        return &table->other;
    spin_lock(&adding);
    for (size_t i = slot_of(name, size, second); !found; i++) {
        struct name_cells *cells = &table->slots[i % NAMES_SLOTS];
        const char *known = atomic_load_explicit(&cells->name, memory_order_relaxed);
        if (!known)
            found = add_locked(table, cells, name, size, second);
        else if (is(known, cells, name, size, second))
            found = cells;
    }
    spin_unlock(&adding);
    return found;
}

// The beginning of a name that counts, which does not end within a UTF-8 character.
static size_t size_of(const char *name)
{
    size_t size = strnlen(name, NAMES_BYTES);
    while (name[size] && size && ((unsigned char)name[size] & 0xc0) == 0x80)
        size--;
    return size;
}

static struct name_cells *find(struct name_table *table, const char *name, size_t size,
                               const char *second)
{
    for (size_t i = slot_of(name, size, second);; i++) {
        struct name_cells *cells = &table->slots[i % NAMES_SLOTS];
        // Acquire: a name comes with its handles.
        const char *known = atomic_load_explicit(&cells->name, memory_order_acquire);
        if (!known)
            return NULL;
        if (is(known, cells, name, size, second))
            return cells;
    }
}

struct name_cells *names_known(struct name_table *table, const char *name, const char *second)
{
    return find(table, name, size_of(name), second);
}

struct name_cells *names_find(struct name_table *table, const char *name, const char *second)
{
    if (!name || !name[0])
        name = "unknown";
    size_t size = size_of(name);
    struct name_cells *found = find(table, name, size, second);
    return found ? found : add(table, name, size, second);
}
