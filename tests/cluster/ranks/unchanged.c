// unchanged SLOW LATE FILE: an MPI program that does not know sonde. The rank SLOW reaches each of
// 40 reductions LATE seconds after the others. Rank 0 writes 300 MiB into FILE.
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 40, VALUES = 100, MIB = 1 << 20, WRITES = 300 };

static char block[MIB];

int main(int argc, char **argv)
{
    double values[VALUES] = {0}, sums[VALUES];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == atoi(argv[1]))
            usleep((unsigned)(atof(argv[2]) * 1e6));
        MPI_Allreduce(values, sums, VALUES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        int fd = open(argv[3], O_CREAT | O_WRONLY | O_TRUNC, 0600);
        for (int i = 0; i < WRITES; i++)
            if (pwrite(fd, block, MIB, 0) != MIB)
                MPI_Abort(MPI_COMM_WORLD, 3);
        close(fd);
    }
    MPI_Finalize();
    return 0;
}
