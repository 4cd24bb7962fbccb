// mpi SLOW LATE FILE: an MPI program. test_mpi.py has the numbers of its calls and bytes. The rank
// SLOW reaches each reduction LATE microseconds after the others; -1 means no rank. Rank 0 writes
// 300 MiB into FILE; - means no file.
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 60, VALUES = 1000, PINGS = 10, RANKS = 4 };

#define CHECK(good)                                                    \
    do {                                                               \
        if (!(good)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #good); \
            MPI_Abort(MPI_COMM_WORLD, 1);                              \
        }                                                              \
    } while (0)

static double from[RANKS * VALUES], to[RANKS * VALUES];
static int rank;

// Rank 0 sends 800 bytes to rank 1 and receives 400, with a status. Rank 1 receives without a
// status.
static void ping_pong(void)
{
    MPI_Status status;
    for (int i = 0; i < PINGS; i++) {
        int count = 0;
        if (rank == 0) {
            MPI_Send(from, 100, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
            MPI_Recv(to, VALUES, MPI_DOUBLE, 1, 8, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_DOUBLE, &count);
            CHECK(count == 50 && status.MPI_SOURCE == 1 && status.MPI_TAG == 8);
        } else if (rank == 1) {
            MPI_Recv(to, VALUES, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(from, 50, MPI_DOUBLE, 0, 8, MPI_COMM_WORLD);
        }
    }
}

// Sends 80 bytes to the next rank by Isend and Irecv, and 40 by Sendrecv.
static void ring(void)
{
    MPI_Request both[2];
    int next = (rank + 1) % RANKS, last = (rank + RANKS - 1) % RANKS;
    MPI_Irecv(to, 10, MPI_DOUBLE, last, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(from, 10, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(from, 10, MPI_INT, next, 2, to, VALUES, MPI_INT, last, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void collectives(int slow, unsigned late_us)
{
    double *all = to;
    int counts[RANKS] = {1, 2, 3, 4}, places[RANKS] = {0, 1, 3, 6}, own = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == slow)
            usleep(late_us);
        MPI_Allreduce(from, to, VALUES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(from, 10, MPI_FLOAT, 2, MPI_COMM_WORLD);
    MPI_Reduce(from, to, 10, MPI_INT, MPI_MAX, 1, MPI_COMM_WORLD);
    MPI_Gather(from, 5, MPI_INT, to, 5, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(from, 6, MPI_INT, to, 6, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgather(from, 7, MPI_INT, to, 7, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 7, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(from, 8, MPI_INT, to, 8, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(from, counts[rank], MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Reduce_scatter(from, to, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// Broadcasts 8 bytes over an unnamed communicator of 2 ranks, and 12 bytes over the same
// communicator after it got a name. Then broadcasts 16 bytes over a new communicator, which may get
// the same handle, and 20 bytes over that of the process itself.
static void communicators(void)
{
    MPI_Comm half, other;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Bcast(from, 2, MPI_INT, 0, half);
    MPI_Comm_set_name(half, "half");
    MPI_Bcast(from, 3, MPI_INT, 0, half);
    MPI_Comm_free(&half);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Bcast(from, 4, MPI_INT, 0, other);
    MPI_Comm_free(&other);
    MPI_Bcast(from, 5, MPI_INT, 0, MPI_COMM_SELF);
}

// Broadcasts 12 bytes of one type, and 20 bytes of a later type, which may get the same handle.
static void types(void)
{
    for (int ints = 3; ints <= 5; ints += 2) {
        MPI_Datatype several;
        MPI_Type_contiguous(ints, MPI_INT, &several);
        MPI_Type_commit(&several);
        MPI_Bcast(from, 1, several, 0, MPI_COMM_SELF);
        MPI_Type_free(&several);
    }
}

static void write_file(const char *path)
{
    static char block[1 << 20];
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    for (int i = 0; i < 300; i++)
        CHECK(pwrite(fd, block, sizeof block, 0) == (ssize_t)sizeof block);
    CHECK(close(fd) == 0);
}

int main(int argc, char **argv)
{
    int size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == RANKS && argc == 4);
    ping_pong();
    ring();
    collectives(atoi(argv[1]), (unsigned)atoi(argv[2]));
    if (rank == 0 && argv[3][0] != '-')
        write_file(argv[3]);
    communicators();
    types();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Send(from, -1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
