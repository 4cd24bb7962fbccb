// mpi.h - what libsonde_mpi.so counts. Internal to src/trace.
//
// One library serves every MPI. It is built without mpi.h, because implementations agree on the
// functions but not on the types of their handles: Open MPI has pointers, MPICH (and Intel MPI,
// Cray MPICH, MVAPICH) has ints. Handles and small constants arrive in one machine word each, on
// all 64-bit calling conventions, and wrappers pass that word on unread (`word`). For what they
// need to know, they ask the library that they are loaded beside: MPI_Type_size, MPI_Comm_size,
// MPI_Comm_get_name, MPI_Get_count.
//
// Wrapped are MPI_X and PMPI_X of each function. Fortran's bindings call one of them: those of
// Open MPI PMPI_X, those of MPICH MPI_X. A call within a wrapped call does not count.
//
// Cost of a call: two readings of the cycle counter (20 ns), MPI_Type_size (5 ns), a cached lookup
// of the communicator (3 ns), three cells (6 ns).
#ifndef SONDE_TRACE_MPI_H
#define SONDE_TRACE_MPI_H

#include "trace/timing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A handle, or a pointer that is passed on.
typedef uintptr_t word;

// The operations, by their names in MPI without the prefix.
// clang-format off
#define MPI_OPS(OP) \
    OP(send) OP(bsend) OP(ssend) OP(rsend) OP(isend) OP(ibsend) OP(issend) OP(irsend)        \
    OP(recv) OP(irecv) OP(mrecv) OP(imrecv) OP(sendrecv) OP(sendrecv_replace) OP(probe)      \
    OP(mprobe) OP(wait) OP(waitall) OP(waitany) OP(waitsome) OP(test) OP(testall)            \
    OP(testany) OP(testsome) OP(start) OP(startall) OP(barrier) OP(bcast) OP(reduce)         \
    OP(allreduce) OP(gather) OP(gatherv) OP(scatter) OP(scatterv) OP(allgather)              \
    OP(allgatherv) OP(alltoall) OP(alltoallv) OP(alltoallw) OP(reduce_scatter)               \
    OP(reduce_scatter_block) OP(scan) OP(exscan) OP(ibarrier) OP(ibcast) OP(ireduce)         \
    OP(iallreduce) OP(iallgather) OP(ialltoall) OP(put) OP(get) OP(accumulate)               \
    OP(win_fence)
// clang-format on

enum mpi_op {
#define OP(name) MPI_##name,
    MPI_OPS(OP)
#undef OP
        MPI_OPS_COUNT
};

// What a call is about, beside a communicator.
#define MPI_NO_COMM ((word)0)

struct mpi_comm;

// Before a call. False: it does not count, because it is within another one, or nothing is
// recorded; mpi_end is not called then.
bool mpi_begin(void);

// After a call that began at `begin`. A failed one (result not 0) does not count. MPI_NO_COMM: it
// is about requests or windows.
void mpi_end(enum mpi_op op, word comm, int result, double bytes, uint64_t begin);

// For the bytes of a call that has succeeded. 0: unknown.
double mpi_bytes(int count, word type);
double mpi_sum_bytes(const int *counts, word comm, word type); // a count for each rank
int mpi_size(word comm);
// Of a received message; `status` is not one of the constants for "ignore".
double mpi_received_bytes(const void *status, word type);

// True for a buffer that is MPI_IN_PLACE: 1 or -1, which are addresses of nothing.
static inline bool mpi_is_in_place(word buffer)
{
    return buffer == 1 || buffer == (word)-1;
}

// True for a status that is MPI_STATUS_IGNORE: 0 or 1.
static inline bool mpi_is_ignored(const void *status)
{
    return (uintptr_t)status <= 1;
}

// A communicator is freed or renamed: its handle is looked up again.
void mpi_forget_comms(void);

// The function of this name in the MPI library that this process uses. It ends the process, as the
// dynamic linker would, if there is none.
void *mpi_next(const char *name);

#endif
