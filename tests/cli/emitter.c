// A program for the tests: begins a span `running` that it never ends, emits 0, 1, 2, … as points
// of `tick` until SIGTERM, then prints the numbers of emitted and dropped points.
#include <sonde.h>

#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t over;

static void on_term(int number)
{
    (void)number;
    over = 1;
}

int main(void)
{
    signal(SIGTERM, on_term);
    sonde_handle tick = sonde_gauge("tick", "");
    const struct timespec pause = {.tv_nsec = 1000000};
    unsigned long long count = 0;
    sonde_span_begin("running");
    printf("up\n");
    fflush(stdout);
    while (!over) {
        sonde_emit(tick, (double)count++);
        nanosleep(&pause, NULL);
    }
    printf("%llu %llu\n", count, (unsigned long long)sonde_dropped());
    return 0;
}
