// Programs that emit, for programs.py; each prints a line of JSON at its end.
//
//   emitter threads COUNT SECONDS put|add   so many threads emit or add all the time
//   emitter crowd COUNT RATE SECONDS        so many processes emit RATE points a second each
//   emitter short COUNT EACH_SECOND POINTS  so many processes, one after another, that emit POINTS
//                                           points and end; EACH_SECOND 0: as fast as two at a time
//
// Without a job, all of them do the same, and nothing is recorded.
#include "sonde.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, BATCH = 1000, AT_A_TIME = 2 };

extern char **environ;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleep_until(double at_s)
{
    double left = at_s - now_s();
    if (left > 0)
        nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)},
                  NULL);
}

static double processor_s(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static sonde_handle define(const char *tag)
{
    const struct sonde_tag tags[] = {{"source", tag}};
    const struct sonde_metric metric = {
        .name = "bench_points", .level = 1, .tags = tags, .tag_count = 1};
    return sonde_define(&metric);
}

// ---- threads

static _Atomic bool stop;
static bool adds;
static _Atomic unsigned long calls;

static void *emit_always(void *number)
{
    char tag[24];
    snprintf(tag, sizeof tag, "%zu", (size_t)number);
    sonde_handle metric = define(tag);
    unsigned long done = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); done += BATCH)
        for (int i = 0; i < BATCH; i++) {
            if (adds)
                sonde_add(metric, 1);
            else
                sonde_emit(metric, i);
        }
    atomic_fetch_add(&calls, done);
    return NULL;
}

static void threads(size_t count, double seconds)
{
    pthread_t all[THREADS_MAX];
    double begin_s = now_s();
    count = count < THREADS_MAX ? count : THREADS_MAX;
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&all[i], NULL, emit_always, (void *)i) != 0)
            exit(1);
    sleep_until(begin_s + seconds);
    atomic_store(&stop, true);
    for (size_t i = 0; i < count; i++)
        pthread_join(all[i], NULL);
    printf("{\"calls\":%lu,\"seconds\":%.6f,\"processor_seconds\":%.6f,\"dropped\":%llu}\n", calls,
           now_s() - begin_s, processor_s(RUSAGE_SELF), (unsigned long long)sonde_dropped());
}

// ---- processes

static void emit_points(long points, double rate)
{
    char tag[24];
    snprintf(tag, sizeof tag, "%d", (int)getpid() % 1000);
    sonde_handle metric = define(tag);
    double begin_s = now_s();
    for (long i = 0; i < points; i++) {
        if (rate > 0)
            sleep_until(begin_s + (double)i / rate);
        sonde_emit(metric, (double)i);
    }
    if (rate > 0)
        sleep_until(begin_s + (double)points / rate);
}

static pid_t start(const char *program, const char *points, const char *rate)
{
    char *arguments[] = {(char *)program, "points", (char *)points, (char *)rate, NULL};
    pid_t child;
    int rc = posix_spawn(&child, program, NULL, NULL, arguments, environ);
    if (rc != 0) {
        fprintf(stderr, "emitter: %s\n", strerror(rc));
        exit(1);
    }
    return child;
}

static void report_processes(long count, double begin_s)
{
    printf("{\"processes\":%ld,\"seconds\":%.6f,\"processor_seconds\":%.6f}\n", count,
           now_s() - begin_s, processor_s(RUSAGE_CHILDREN));
}

static void crowd(const char *program, long count, const char *rate, double seconds)
{
    char points[24];
    double begin_s = now_s();
    snprintf(points, sizeof points, "%.0f", strtod(rate, NULL) * seconds);
    for (long i = 0; i < count; i++)
        start(program, points, rate);
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    report_processes(count, begin_s);
}

static void many_short(const char *program, long count, double each_second, const char *points)
{
    double begin_s = now_s();
    long running = 0;
    for (long i = 0; i < count; i++) {
        if (each_second > 0)
            sleep_until(begin_s + (double)i / each_second);
        start(program, points, "0");
        running++;
        while (waitpid(-1, NULL, running >= AT_A_TIME && each_second <= 0 ? 0 : WNOHANG) > 0)
            running--;
    }
    while (wait(NULL) > 0)
        ;
    report_processes(count, begin_s);
}

int main(int count, char **arguments)
{
    const char *what = count > 3 ? arguments[1] : "";
    if (strcmp(what, "points") == 0) {
        emit_points(atol(arguments[2]), strtod(arguments[3], NULL));
    } else if (strcmp(what, "threads") == 0 && count > 4) {
        adds = strcmp(arguments[4], "add") == 0;
        threads((size_t)atol(arguments[2]), strtod(arguments[3], NULL));
    } else if (strcmp(what, "crowd") == 0 && count > 4) {
        crowd(arguments[0], atol(arguments[2]), arguments[3], strtod(arguments[4], NULL));
    } else if (strcmp(what, "short") == 0 && count > 4) {
        many_short(arguments[0], atol(arguments[2]), strtod(arguments[3], NULL), arguments[4]);
    } else {
        fputs("usage: emitter threads|crowd|short …\n", stderr);
        return 2;
    }
    return 0;
}
