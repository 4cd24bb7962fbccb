// mpi_cells.c - communicators and their cells; finds the functions of the MPI library.
//
// A communicator has the same label on all of its ranks: `world`, `self`, the name that the program
// has given it, or `size-4` with its size. All communicators with the same label share their cells.
// Each thread caches the labels of the last communicators, and the sizes of the last types.
// MPI_Comm_free, MPI_Comm_set_name and MPI_Type_free make all threads look them up again.
#include "trace/bounds.h"
#include "trace/counter.h"
#include "trace/mpi.h"
#include "trace/spin.h"

#include "sonde.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COMMS_MAX = 64, // communicators with further labels get the label "other"
    LABEL_BYTES = 64,
    NAME_BYTES = 1024, // more than MPI_MAX_OBJECT_NAME of any implementation
    CACHE_SLOTS = 16,
    STATUS_FOUND = 127, // the exit code of the dynamic linker for a missing symbol
};

struct mpi_comm {
    char label[LABEL_BYTES];
    struct {
        _Atomic bool defined;
        sonde_handle calls, seconds, bytes;
        // 0: some ranks may leave the operation before others enter it
        sonde_handle collective_seconds;
    } ops[MPI_OPS_COUNT];
};

static struct mpi_comm comms[COMMS_MAX + 2];
static struct mpi_comm *const no_comm = &comms[COMMS_MAX], *const other = &comms[COMMS_MAX + 1];
static int comm_count;
static spin adding;

// A cached entry of an older generation is looked up again.
static _Atomic unsigned comm_generation = 1, type_generation = 1;

static __thread struct {
    word handle;
    unsigned generation;
    int size;
    struct mpi_comm *comm;
} labels[CACHE_SLOTS];
static __thread struct {
    word handle;
    unsigned generation;
    int size;
} types[CACHE_SLOTS];

__thread uintptr_t mpi_inside;
bool mpi_off = true;

static const char *const op_names[] = {
#define OP(name) #name,
    MPI_OPS(OP)
#undef OP
};

// ---- the MPI library

struct search {
    const char *name;
    void *found;
};

// This search finds a library that was opened with RTLD_LOCAL, as Python's extensions are.
static int search_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct search *s = user;
    const char *slash = strrchr(info->dlpi_name, '/'), *base = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(base, "libmpi", 6) != 0 && strncmp(base, "libmpich", 8) != 0)
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
    s->found = library ? dlsym(library, s->name) : NULL;
    return s->found != NULL;
}

static void *find(const char *name)
{
    struct search s = {name, dlsym(RTLD_NEXT, name)};
    if (!s.found)
        dl_iterate_phdr(search_object, &s);
    return s.found;
}

static void *need(const char *name)
{
    void *found = find(name);
    if (found)
        return found;
    fprintf(stderr, "sonde: --trace mpi: %s is in no library of this process\n", name);
    _exit(STATUS_FOUND);
}

static struct {
    int (*type_size)(word, int *);
    int (*comm_size)(word, int *);
    int (*comm_get_name)(word, char *, int *);
    int (*get_count)(const void *, word, int *);
    // If handles are ints, the upper half of a word may have any value.
    word handle_mask;
} library;

// Threads that do this at the same time get the same result.
static void find_library(void)
{
    library.handle_mask = find("ompi_mpi_comm_world") ? (word)-1 : UINT32_MAX;
    library.comm_size = (int (*)(word, int *))need("PMPI_Comm_size");
    library.comm_get_name = (int (*)(word, char *, int *))need("PMPI_Comm_get_name");
    library.get_count = (int (*)(const void *, word, int *))need("PMPI_Get_count");
    library.type_size = (int (*)(word, int *))need("PMPI_Type_size");
}

void *mpi_next(const char *name)
{
    find_library();
    return need(name);
}

__attribute__((constructor)) static void start(void)
{
    snprintf(other->label, LABEL_BYTES, "%s", "other");
    mpi_off = trace_is_off();
}

// ---- communicators

// True if the program has given this name. Open MPI names each communicator, "MPI COMMUNICATOR 3
// DUP FROM 0", with a number that differs by rank.
static bool is_given(const char *name)
{
    return name[0] && strncmp(name, "MPI COMMUNICATOR ", 17) != 0;
}

static void make_label(word handle, int size, char label[LABEL_BYTES])
{
    char name[NAME_BYTES] = "";
    int length = 0;
    if (library.comm_get_name(handle, name, &length) != 0)
        name[0] = 0;
    name[NAME_BYTES - 1] = 0;
    if (strcmp(name, "MPI_COMM_WORLD") == 0)
        snprintf(label, LABEL_BYTES, "%s", "world");
    else if (strcmp(name, "MPI_COMM_SELF") == 0)
        snprintf(label, LABEL_BYTES, "%s", "self");
    else if (is_given(name))
        snprintf(label, LABEL_BYTES, "%.*s", LABEL_BYTES - 1, name);
    else
        snprintf(label, LABEL_BYTES, "size-%d", size);
}

static struct mpi_comm *comm_of_label(const char label[LABEL_BYTES])
{
    struct mpi_comm *found = NULL;
    spin_lock(&adding);
    for (int i = 0; i < comm_count && !found; i++)
        if (strcmp(comms[i].label, label) == 0)
            found = &comms[i];
    if (!found && comm_count < COMMS_MAX) {
        found = &comms[comm_count];
        memcpy(found->label, label, LABEL_BYTES);
        comm_count++;
    }
    spin_unlock(&adding);
    return found ? found : other;
}

static unsigned slot_of(word handle)
{
    return (unsigned)((handle >> 4) ^ (handle >> 12) ^ handle) % CACHE_SLOTS;
}

// Finds the label and size of a communicator in the thread's cache, or looks them up.
static unsigned look_up(word handle)
{
    handle &= library.handle_mask;
    unsigned at = slot_of(handle),
             now = atomic_load_explicit(&comm_generation, memory_order_relaxed);
    if (__builtin_expect(labels[at].handle == handle && labels[at].generation == now, 1))
        return at;
    char label[LABEL_BYTES] = "";
    int size = 0;
    library.comm_size(handle, &size);
    make_label(handle, size, label);
    labels[at].comm = comm_of_label(label);
    labels[at].handle = handle;
    labels[at].size = size;
    labels[at].generation = now;
    return at;
}

void mpi_forget_comms(void)
{
    atomic_fetch_add_explicit(&comm_generation, 1, memory_order_relaxed);
}

void mpi_forget_types(void)
{
    atomic_fetch_add_explicit(&type_generation, 1, memory_order_relaxed);
}

// ---- bytes

int mpi_size(word comm)
{
    return labels[look_up(comm)].size;
}

// Returns 0 for a handle that is not a type.
static int type_size(word handle)
{
    handle &= library.handle_mask;
    unsigned at = slot_of(handle),
             now = atomic_load_explicit(&type_generation, memory_order_relaxed);
    if (__builtin_expect(types[at].handle == handle && types[at].generation == now, 1))
        return types[at].size;
    int size = 0;
    if (library.type_size(handle, &size) != 0)
        return 0;
    types[at].handle = handle;
    types[at].size = size;
    types[at].generation = now;
    return size;
}

double mpi_bytes(int count, word type)
{
    return (double)count * type_size(type);
}

double mpi_sum_bytes(const int *counts, word comm, word type)
{
    int64_t sum = 0;
    for (int i = 0, size = mpi_size(comm); i < size; i++)
        sum += counts[i];
    return (double)sum * type_size(type);
}

// A part of an element gives MPI_UNDEFINED, which is negative.
double mpi_received_bytes(const void *status, word type)
{
    int count = 0;
    return library.get_count(status, type, &count) == 0 && count > 0 ? mpi_bytes(count, type) : 0;
}

// ---- calls

// True if no rank leaves such an operation before the last rank has entered it.
static bool waits_for_all(enum mpi_op op)
{
    return op == MPI_allreduce || op == MPI_barrier || op == MPI_allgather ||
           op == MPI_allgatherv || op == MPI_alltoall || op == MPI_alltoallv ||
           op == MPI_alltoallw || op == MPI_reduce_scatter || op == MPI_reduce_scatter_block;
}

// `op` may be NULL: the series then has no such tag.
static sonde_handle define(const struct mpi_comm *c, const char *op, const char *name,
                           const char *unit, const char *help)
{
    struct sonde_tag tags[2];
    size_t count = 0;
    if (op)
        tags[count++] = (struct sonde_tag){"op", op};
    if (c != no_comm)
        tags[count++] = (struct sonde_tag){"comm", c->label};
    return counter_define(name, unit, help, tags, count);
}

__attribute__((noinline, cold)) static void define_op(struct mpi_comm *c, enum mpi_op op)
{
    const char *name = op_names[op];
    c->ops[op].calls = define(c, name, "mpi_calls", "", "MPI calls of programs");
    c->ops[op].seconds = define(c, name, "mpi_seconds", "seconds",
                                "time of programs in MPI calls, waiting included");
    c->ops[op].bytes =
        define(c, name, "mpi_bytes", "bytes", "bytes that MPI calls handed over or received");
    if (waits_for_all(op))
        c->ops[op].collective_seconds =
            define(c, NULL, "mpi_collective_seconds", "seconds",
                   "time of programs in collectives that no rank leaves before all have entered");
    // Release: a thread that reads `defined` also reads the handles.
    atomic_store_explicit(&c->ops[op].defined, true, memory_order_release);
}

void mpi_end(enum mpi_op op, word comm, int result, double bytes, uint64_t begin)
{
    if (result == 0) {
        double seconds = timing_seconds_since(begin);
        struct mpi_comm *c = comm == MPI_NO_COMM ? no_comm : labels[look_up(comm)].comm;
        // Acquire: if the operation is defined, its handles are set.
        if (__builtin_expect(!atomic_load_explicit(&c->ops[op].defined, memory_order_acquire), 0))
            define_op(c, op);
        sonde_add(c->ops[op].calls, 1);
        sonde_add(c->ops[op].seconds, seconds);
        sonde_add(c->ops[op].collective_seconds, seconds);
        if (bytes > 0)
            sonde_add(c->ops[op].bytes, bytes);
    }
    mpi_inside = 0;
}
