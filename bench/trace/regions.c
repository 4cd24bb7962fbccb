// regions region|barrier COUNT: the processor time of an OpenMP region or barrier of one thread, in
// ns. One thread waits for no other, so this is the cost of the calls alone.
#include "measure.h"

#include <stdlib.h>
#include <string.h>

static void regions(int count)
{
    for (int i = 0; i < count; i++) {
#pragma omp parallel num_threads(1)
        __asm__ volatile("" ::: "memory"); // or the compiler removes the region
    }
}

static void barriers(int count)
{
#pragma omp parallel num_threads(1)
    for (int i = 0; i < count; i++) {
#pragma omp barrier
    }
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    void (*loop)(int) = strcmp(arguments[1], "region") == 0 ? regions : barriers;
    measure(loop, atoi(arguments[2]));
    return 0;
}
