// mpi_calls.c - the wrappers of MPI's functions.
//
// A row has the name, the parameters, the arguments to pass on, the communicator, and the number of
// bytes that the call has transferred (docs/trace.md, "Bytes"). The bytes are computed only if the
// call has succeeded. Handles and buffers are words (mpi.h).
#include "trace/mpi.h"

enum { STATUS_WORDS = 16 }; // more than the size of any implementation's status

// Declares `next`, the MPI library's function of this name, which is looked up at the first call.
// With acquire and release, a thread that finds it also finds what mpi_next() has found beside it.
// clang-format off
#define FIND_NEXT(symbol, declared)                                          \
    static int (*found) declared;                                            \
    int (*next) declared = __atomic_load_n(&found, __ATOMIC_ACQUIRE);        \
    if (__builtin_expect(!next, 0)) {                                        \
        next = (int (*) declared)mpi_next(#symbol);                          \
        __atomic_store_n(&found, next, __ATOMIC_RELEASE);                    \
    }

#define WRAP_AS(symbol, op, setup, declared, passed, comm, bytes)            \
    int symbol declared;                                                     \
    __attribute__((visibility("default"))) int symbol declared               \
    {                                                                        \
        FIND_NEXT(symbol, declared)                                          \
        if (!mpi_begin())                                                    \
            return next passed;                                              \
        setup                                                                \
        uint64_t begin = timing_now();                                       \
        int result = next passed;                                            \
        mpi_end(MPI_##op, comm, result, result == 0 ? (bytes) : 0, begin);   \
        return result;                                                       \
    }
#define WRAP_WITH(name, op, setup, declared, passed, comm, bytes)            \
    WRAP_AS(MPI_##name, op, setup, declared, passed, comm, bytes)            \
    WRAP_AS(PMPI_##name, op, setup, declared, passed, comm, bytes)
#define WRAP(name, op, declared, passed, comm, bytes)                        \
    WRAP_WITH(name, op, , declared, passed, comm, bytes)
// clang-format on

// ---- messages

#define SEND(name, op)                                                            \
    WRAP(name, op, (word from, int count, word type, int to, int tag, word comm), \
         (from, count, type, to, tag, comm), comm, mpi_bytes(count, type))
SEND(Send, send)
SEND(Bsend, bsend)
SEND(Ssend, ssend)
SEND(Rsend, rsend)

#define ISEND(name, op)                                                                      \
    WRAP(name, op, (word from, int count, word type, int to, int tag, word comm, word made), \
         (from, count, type, to, tag, comm, made), comm, mpi_bytes(count, type))
ISEND(Isend, isend)
ISEND(Ibsend, ibsend)
ISEND(Issend, issend)
ISEND(Irsend, irsend)

// The status has the number of bytes. If the program passes no status, the wrapper uses its own.
#define NEED_STATUS                    \
    uintptr_t own[STATUS_WORDS] = {0}; \
    status = mpi_is_ignored(status) ? own : status;
#define RECEIVED mpi_received_bytes(status, type)
WRAP_WITH(Recv, recv, NEED_STATUS,
          (word to, int count, word type, int from, int tag, word comm, void *status),
          (to, count, type, from, tag, comm, status), comm, RECEIVED)
WRAP_WITH(Mrecv, mrecv, NEED_STATUS, (word to, int count, word type, word message, void *status),
          (to, count, type, message, status), MPI_NO_COMM, RECEIVED)
WRAP(Irecv, irecv, (word to, int count, word type, int from, int tag, word comm, word made),
     (to, count, type, from, tag, comm, made), comm, 0)
WRAP(Imrecv, imrecv, (word to, int count, word type, word message, word made),
     (to, count, type, message, made), MPI_NO_COMM, 0)
WRAP_WITH(Sendrecv, sendrecv, NEED_STATUS,
          (word from, int sent, word sent_type, int receiver, int sent_tag, word to, int count,
           word type, int sender, int tag, word comm, void *status),
          (from, sent, sent_type, receiver, sent_tag, to, count, type, sender, tag, comm, status),
          comm, mpi_bytes(sent, sent_type) + RECEIVED)
WRAP_WITH(Sendrecv_replace, sendrecv_replace, NEED_STATUS,
          (word buffer, int count, word type, int receiver, int sent_tag, int sender, int tag,
           word comm, void *status),
          (buffer, count, type, receiver, sent_tag, sender, tag, comm, status), comm,
          mpi_bytes(count, type) + RECEIVED)
WRAP(Probe, probe, (int from, int tag, word comm, word status), (from, tag, comm, status), comm, 0)
WRAP(Mprobe, mprobe, (int from, int tag, word comm, word message, word status),
     (from, tag, comm, message, status), comm, 0)

// ---- requests

WRAP(Wait, wait, (word request, word status), (request, status), MPI_NO_COMM, 0)
WRAP(Waitall, waitall, (int count, word requests, word statuses), (count, requests, statuses),
     MPI_NO_COMM, 0)
WRAP(Waitany, waitany, (int count, word requests, word index, word status),
     (count, requests, index, status), MPI_NO_COMM, 0)
WRAP(Waitsome, waitsome, (int count, word requests, word done, word indices, word statuses),
     (count, requests, done, indices, statuses), MPI_NO_COMM, 0)
WRAP(Test, test, (word request, word flag, word status), (request, flag, status), MPI_NO_COMM, 0)
WRAP(Testall, testall, (int count, word requests, word flag, word statuses),
     (count, requests, flag, statuses), MPI_NO_COMM, 0)
WRAP(Testany, testany, (int count, word requests, word index, word flag, word status),
     (count, requests, index, flag, status), MPI_NO_COMM, 0)
WRAP(Testsome, testsome, (int count, word requests, word done, word indices, word statuses),
     (count, requests, done, indices, statuses), MPI_NO_COMM, 0)
WRAP(Start, start, (word request), (request), MPI_NO_COMM, 0)
WRAP(Startall, startall, (int count, word requests), (count, requests), MPI_NO_COMM, 0)

// ---- collectives

WRAP(Barrier, barrier, (word comm), (comm), comm, 0)
WRAP(Bcast, bcast, (word buffer, int count, word type, int root, word comm),
     (buffer, count, type, root, comm), comm, mpi_bytes(count, type))
WRAP(Reduce, reduce,
     (word from, word to, int count, word type, word operation, int root, word comm),
     (from, to, count, type, operation, root, comm), comm, mpi_bytes(count, type))

#define REDUCE(name, op)                                                                  \
    WRAP(name, op, (word from, word to, int count, word type, word operation, word comm), \
         (from, to, count, type, operation, comm), comm, mpi_bytes(count, type))
REDUCE(Allreduce, allreduce)
REDUCE(Scan, scan)
REDUCE(Exscan, exscan)
WRAP(Reduce_scatter_block, reduce_scatter_block,
     (word from, word to, int count, word type, word operation, word comm),
     (from, to, count, type, operation, comm), comm, mpi_bytes(count, type) * mpi_size(comm))
WRAP(Reduce_scatter, reduce_scatter,
     (word from, word to, const int *counts, word type, word operation, word comm),
     (from, to, counts, type, operation, comm), comm, mpi_sum_bytes(counts, comm, type))

// With MPI_IN_PLACE, a rank sends the same part that it receives.
#define PART (mpi_is_in_place(from) ? mpi_bytes(count, to_type) : mpi_bytes(sent, type))
#define FROM word from, int sent, word type
#define FROM_PASSED from, sent, type
WRAP(Gather, gather, (FROM, word to, int count, word to_type, int root, word comm),
     (FROM_PASSED, to, count, to_type, root, comm), comm, PART)
WRAP(Gatherv, gatherv, (FROM, word to, word counts, word places, word to_type, int root, word comm),
     (FROM_PASSED, to, counts, places, to_type, root, comm), comm,
     mpi_is_in_place(from) ? 0 : mpi_bytes(sent, type))
WRAP(Allgather, allgather, (FROM, word to, int count, word to_type, word comm),
     (FROM_PASSED, to, count, to_type, comm), comm, PART)
WRAP(Allgatherv, allgatherv, (FROM, word to, word counts, word places, word to_type, word comm),
     (FROM_PASSED, to, counts, places, to_type, comm), comm,
     mpi_is_in_place(from) ? 0 : mpi_bytes(sent, type))
WRAP(Alltoall, alltoall, (FROM, word to, int count, word to_type, word comm),
     (FROM_PASSED, to, count, to_type, comm), comm, PART *mpi_size(comm))
WRAP(Alltoallv, alltoallv,
     (word from, const int *sent, word from_places, word type, word to, const int *counts,
      word places, word to_type, word comm),
     (from, sent, from_places, type, to, counts, places, to_type, comm), comm,
     mpi_is_in_place(from) ? mpi_sum_bytes(counts, comm, to_type) : mpi_sum_bytes(sent, comm, type))
WRAP(Alltoallw, alltoallw,
     (word from, word sent, word from_places, word types, word to, word counts, word places,
      word to_types, word comm),
     (from, sent, from_places, types, to, counts, places, to_types, comm), comm, 0)

// A rank counts the bytes that it receives. If the root keeps its part in place, it counts 0.
#define SHARE (mpi_is_in_place(to) ? 0 : mpi_bytes(count, to_type))
WRAP(Scatter, scatter, (FROM, word to, int count, word to_type, int root, word comm),
     (FROM_PASSED, to, count, to_type, root, comm), comm, SHARE)
WRAP(Scatterv, scatterv,
     (word from, word sent, word places, word type, word to, int count, word to_type, int root,
      word comm),
     (from, sent, places, type, to, count, to_type, root, comm), comm, SHARE)

WRAP(Ibarrier, ibarrier, (word comm, word made), (comm, made), comm, 0)
WRAP(Ibcast, ibcast, (word buffer, int count, word type, int root, word comm, word made),
     (buffer, count, type, root, comm, made), comm, mpi_bytes(count, type))
WRAP(Ireduce, ireduce,
     (word from, word to, int count, word type, word operation, int root, word comm, word made),
     (from, to, count, type, operation, root, comm, made), comm, mpi_bytes(count, type))
WRAP(Iallreduce, iallreduce,
     (word from, word to, int count, word type, word operation, word comm, word made),
     (from, to, count, type, operation, comm, made), comm, mpi_bytes(count, type))
WRAP(Iallgather, iallgather, (FROM, word to, int count, word to_type, word comm, word made),
     (FROM_PASSED, to, count, to_type, comm, made), comm, PART)
WRAP(Ialltoall, ialltoall, (FROM, word to, int count, word to_type, word comm, word made),
     (FROM_PASSED, to, count, to_type, comm, made), comm, PART *mpi_size(comm))

// ---- windows

#define REMOTE word buffer, int count, word type, int rank, intptr_t at, int far, word far_type
#define REMOTE_PASSED buffer, count, type, rank, at, far, far_type
WRAP(Put, put, (REMOTE, word window), (REMOTE_PASSED, window), MPI_NO_COMM, mpi_bytes(count, type))
WRAP(Get, get, (REMOTE, word window), (REMOTE_PASSED, window), MPI_NO_COMM, mpi_bytes(count, type))
WRAP(Accumulate, accumulate, (REMOTE, word operation, word window),
     (REMOTE_PASSED, operation, window), MPI_NO_COMM, mpi_bytes(count, type))
WRAP(Win_fence, win_fence, (int assertion, word window), (assertion, window), MPI_NO_COMM, 0)

// ---- handles: these calls do not count, but free or change what a handle means

#define CHANGES(symbol, forget, declared, passed)              \
    int symbol declared;                                       \
    __attribute__((visibility("default"))) int symbol declared \
    {                                                          \
        FIND_NEXT(symbol, declared)                            \
        forget();                                              \
        int result = next passed;                              \
        forget();                                              \
        return result;                                         \
    }
#define CHANGES_COMM(name, declared, passed)                \
    CHANGES(MPI_##name, mpi_forget_comms, declared, passed) \
    CHANGES(PMPI_##name, mpi_forget_comms, declared, passed)
CHANGES_COMM(Comm_free, (word comm), (comm))
CHANGES_COMM(Comm_disconnect, (word comm), (comm))
CHANGES_COMM(Comm_set_name, (word comm, const char *name), (comm, name))
CHANGES(MPI_Type_free, mpi_forget_types, (word type), (type))
CHANGES(PMPI_Type_free, mpi_forget_types, (word type), (type))
