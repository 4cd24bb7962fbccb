// mpi.h - what libsonde_mpi.so counts. Internal to src/trace.
//
// One library serves all MPI implementations. It is built without mpi.h, because implementations
// have the same functions, but different types of handles: Open MPI uses pointers, MPICH (and Intel
// MPI, Cray MPICH, MVAPICH) uses ints. In all 64-bit calling conventions, handles and small
// constants arrive in one machine word each. Wrappers pass this word on without interpreting it
// (`word`). If they need more information, they call the MPI library that the program uses:
// MPI_Type_size, MPI_Comm_size, MPI_Comm_get_name, MPI_Get_count.
//
// Both MPI_X and PMPI_X of each function have wrappers, because Fortran's bindings call one of
// them: PMPI_X in Open MPI, MPI_X in MPICH. A call within a wrapped call does not count.
//
// Cost of a call: two readings of the cycle counter (20 ns), cached lookups of the type and of the
// communicator (2 ns each), three cells (6 ns).
#ifndef SONDE_TRACE_MPI_H
#define SONDE_TRACE_MPI_H

#include "trace/timing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A handle, or a pointer that wrappers pass on.
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

// The call is about requests or windows, not about a communicator.
#define MPI_NO_COMM ((word)0)

struct mpi_comm;

extern bool mpi_off;                  // nothing is recorded
extern __thread uintptr_t mpi_inside; // the frame of the call that the thread is in; 0: none

// Called before a call. Returns false if the call does not count, because it is within another
// call, or nothing is recorded; mpi_end must then not be called.
//
// A call within another one has its frame further down the stack. A frame that is not further down
// says that the other call never returned: an error handler of the program has left it by a jump or
// an exception.
static inline bool mpi_begin(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (mpi_off || here < mpi_inside)
        return false;
    mpi_inside = here;
    return true;
}

// Called after a call that began at `begin`. A failed call (result not 0) does not count. `comm`
// may be MPI_NO_COMM.
void mpi_end(enum mpi_op op, word comm, int result, double bytes, uint64_t begin);

// Returns the bytes of a call that has succeeded; 0: unknown.
double mpi_bytes(int count, word type);
// `counts` has a number for each rank
double mpi_sum_bytes(const int *counts, word comm, word type);
int mpi_size(word comm);
// Returns the bytes of a received message. `status` must not be one of the constants for "ignore".
double mpi_received_bytes(const void *status, word type);

// True if the buffer is MPI_IN_PLACE, which is 1 or -1; neither is a valid address.
static inline bool mpi_is_in_place(word buffer)
{
    return buffer == 1 || buffer == (word)-1;
}

// True if the status is MPI_STATUS_IGNORE, which is 0 or 1.
static inline bool mpi_is_ignored(const void *status)
{
    return (uintptr_t)status <= 1;
}

// Called before handles are freed, because another thread may get them at once for new objects, and
// after a communicator was renamed. All handles are looked up again.
void mpi_forget_comms(void);
void mpi_forget_types(void);

// Returns the function of this name in the MPI library that this process uses. If there is none, it
// ends the process, as the dynamic linker would.
void *mpi_next(const char *name);

#endif
