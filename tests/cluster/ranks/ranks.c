// ranks LANGUAGE: the MPI program of test_programs.py in C. LANGUAGE is a tag of all data.
#include <mpi.h>
#include <sonde.h>

static sonde_handle define(const char *name, enum sonde_kind kind, const struct sonde_tag *language)
{
    struct sonde_metric metric = {name, "", "", kind, 1, language, 1};
    return sonde_define(&metric);
}

int main(int argc, char **argv)
{
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const struct sonde_tag language = {"language", argv[1]};
    sonde_handle part = define("part", SONDE_GAUGE, &language),
                 steps = define("steps", SONDE_COUNTER, &language),
                 total = define("total", SONDE_GAUGE, &language);

    sonde_span_begin("solve", "language", argv[1]);
    for (int i = 0; i < 10; i++) {
        sonde_emit(part, 100 * rank + i);
        sonde_add(steps, 1);
    }
    sonde_span_begin("exchange", "language", argv[1]);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    sonde_span_end();
    sonde_span_end();
    sonde_emit(total, sum);
    MPI_Finalize();
    return 0;
}
