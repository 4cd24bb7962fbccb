// messages WHAT COUNT: rank 0 prints the nanoseconds per call of a loop of MPI calls. For `self`,
// which uses one rank, it is processor time. trace.py builds it with the compiler of each MPI.
#include "measure.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank = 0;
    double from = 1, to = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    long count = atol(argv[2]);
    int self = strcmp(argv[1], "self") == 0, ping_pong = strcmp(argv[1], "ping_pong") == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    clockid_t clock = self ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double begin = now_ns(clock);
    for (long i = 0; i < count; i++) {
        if (self) { // measures the call itself, without another process
            MPI_Allreduce(&from, &to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
        } else if (!ping_pong) {
            MPI_Allreduce(&from, &to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        } else if (rank == 0) {
            MPI_Send(&from, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&to, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&to, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&from, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        }
    }
    double calls = (double)count * (ping_pong ? 2 : 1);
    if (rank == 0)
        printf("%.2f\n", (now_ns(clock) - begin) / calls);
    MPI_Finalize();
    return 0;
}
