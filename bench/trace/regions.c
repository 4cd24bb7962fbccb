// regions region|barrier COUNT: the processor time of an OpenMP region or barrier of one thread, in
// ns. One thread waits for no other, so this is the cost of the calls alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

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
    int calls = atoi(arguments[2]);
    loop(calls);
    double begin = now_ns();
    loop(calls);
    printf("%.1f\n", (now_ns() - begin) / calls);
    return 0;
}
