// ranks LANGUAGE: the MPI program of test_programs.py in C++. LANGUAGE is a tag of all data.
#include <mpi.h>
#include <sonde.hpp>

int main(int argc, char **argv)
{
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const std::string language = argv[1];
    const sonde::gauge part("part", {{"language", language}});
    const sonde::counter steps("steps", {{"language", language}});
    const sonde::gauge total("total", {{"language", language}});
    {
        sonde::span solve("solve", {{"language", language}});
        for (int i = 0; i < 10; i++) {
            part.emit(100 * rank + i);
            steps.add(1);
        }
        sonde::span exchange("exchange", {{"language", language}});
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    total.emit(sum);
    MPI_Finalize();
    return 0;
}
