// A program of the soak: emits numbered points, additions to a counter, and numbered spans, and
// counts them in an account.
//
//     soak_emitter ACCOUNT SLOT GENERATION POINTS_A_SECOND
//
// The account is a mapped file with the eight numbers of `struct account`; it survives kill -9 of
// this program. "begun" rises before a call, "done" after it. After a kill between the two they
// differ by one, and the last point or span may be recorded or not. The n-th point has the value
// GENERATION * 2^24 + n; the n-th span lasts GENERATION * 2^20 + n nanoseconds. So a reader
// identifies each by its value alone.
#include <sonde.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define POINTS_MAX (1U << 24)
#define SPANS_MAX (1U << 20)
#define ROUND_NS 20000000
#define ROUNDS_A_SECOND (1000000000 / ROUND_NS)
#define BURST_EVERY 250 // rounds; such a round emits the points of a second at once
#define SPAN_EVERY 5    // rounds

struct account {
    _Atomic uint64_t points_begun, points_done, adds_begun, adds_done, spans_begun, spans_done,
        dropped, ended;
};

static volatile sig_atomic_t stopping;

static void on_term(int number)
{
    (void)number;
    stopping = 1;
}

static int64_t realtime_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void emit_round(struct account *a, sonde_handle points, sonde_handle cell,
                       uint64_t generation, uint64_t count)
{
    for (uint64_t i = 0; i < count && a->points_done < POINTS_MAX && !stopping; i++) {
        a->points_begun++;
        sonde_emit(points, (double)(generation * POINTS_MAX + a->points_done));
        a->points_done++;
        a->adds_begun++;
        sonde_add(cell, 1);
        a->adds_done++;
        a->dropped = sonde_dropped();
    }
}

static void emit_span(struct account *a, const struct sonde_tag *slot, uint64_t generation)
{
    if (a->spans_done == SPANS_MAX)
        return;
    int64_t end = realtime_ns();
    a->spans_begun++;
    sonde_span_at("soak_span", end - (int64_t)(generation * SPANS_MAX + a->spans_done), end, slot,
                  1);
    a->spans_done++;
    a->dropped = sonde_dropped();
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    signal(SIGTERM, on_term);
    int fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct account)) < 0) {
        perror(argv[1]);
        return 1;
    }
    struct account *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (a == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    struct sonde_tag slot = {"slot", argv[2]};
    uint64_t generation = strtoull(argv[3], NULL, 10), rate = strtoull(argv[4], NULL, 10);
    struct sonde_metric points = {.name = "soak_points", .tags = &slot, .tag_count = 1};
    struct sonde_metric cell = {
        .name = "soak_cell", .kind = SONDE_COUNTER, .tags = &slot, .tag_count = 1};
    sonde_handle emitted = sonde_define(&points), added = sonde_define(&cell);
    const struct timespec pause = {.tv_nsec = ROUND_NS};
    for (unsigned round = 1; !stopping; round++) {
        emit_round(a, emitted, added, generation,
                   round % BURST_EVERY == 0 ? rate
                                            : (rate + ROUNDS_A_SECOND - 1) / ROUNDS_A_SECOND);
        if (round % SPAN_EVERY == 0)
            emit_span(a, &slot, generation);
        nanosleep(&pause, NULL);
    }
    a->ended = 1;
    return 0;
}
