// omp ROUNDS SLOW LATE WIDE: an OpenMP program with known numbers of regions and barriers, which
// test_omp.py has. The thread SLOW comes LATE microseconds late to the barrier of each of ROUNDS
// regions. After WIDE regions of four threads, 100 of two follow.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, NARROW = 100 };

static int work(int rounds, int slow, unsigned late_us)
{
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
#pragma omp parallel num_threads(THREADS) reduction(+ : sum) // of the rounds
        {
            if (omp_get_thread_num() == slow)
                usleep(late_us);
#pragma omp barrier
#pragma omp for
            for (int k = 0; k < 100; k++)
                sum += k;
        }
    }
    return sum;
}

static int nested(void)
{
    int sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : sum) // outer
    {
#pragma omp parallel num_threads(2) reduction(+ : sum) // inner
        sum++;
    }
    return sum;
}

static int narrow(int wide)
{
    int sum = 0;
    for (int i = 0; i < wide + NARROW; i++) {
#pragma omp parallel num_threads(i < wide ? THREADS : 2) reduction(+ : sum) // of two widths
        sum++;
    }
    return sum;
}

int main(int count, char **arguments)
{
    if (count != 5)
        return 2;
    int rounds = atoi(arguments[1]), wide = atoi(arguments[4]);
    printf("%d\n", work(rounds, atoi(arguments[2]), (unsigned)atoi(arguments[3])));
    if (wide)
        printf("%d\n", narrow(wide));
    else
        printf("%d\n", nested());
    return 0;
}
