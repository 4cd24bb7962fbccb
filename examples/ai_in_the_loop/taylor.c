// taylor X: sin(X) by its Taylor series. The ranks share the terms; rank 0 prints the sum.
#include <mpi.h>
#include <sonde.h>
#include <stdio.h>
#include <stdlib.h>

enum { TERMS = 20 };

int main(int count, char **arguments)
{
    int rank, ranks;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double x = count > 1 ? atof(arguments[1]) : 0, own = 0, sum = 0, term = x;
    sonde_handle terms = sonde_counter("taylor_terms", "");

    sonde_span_begin("terms");
    for (int k = 0; k < TERMS; k++) {
        if (k % ranks == rank) {
            own += term;
            sonde_add(terms, 1);
        }
        term *= -x * x / ((2 * k + 2) * (2 * k + 3));
    }
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    sonde_span_end();
    if (rank == 0)
        printf("%.17g\n", sum);
    MPI_Finalize();
    return 0;
}
