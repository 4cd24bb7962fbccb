// emitter.c - the programs for the tests of the ingest: `emitter MODE ARGUMENTS…`. Each writes its
// results to standard output, and reads a line from standard input at points where the test
// intervenes.
#include "emitter.h"

#include "../seed.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t random_state;

int argument_count;

char **arguments;

long number(int i)
{
    return i < argument_count ? strtol(arguments[i], NULL, 10) : 0;
}

void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

void wait_for_line(void)
{
    char c;
    while (read(0, &c, 1) == 1 && c != '\n')
        ;
}

uint64_t random_u64(void)
{
    return test_random(&random_state);
}

bool run_threads(long count, void *(*run)(void *index))
{
    enum { THREADS_MAX = 1024 };
    pthread_t threads[THREADS_MAX];
    for (long i = 0; i < count; i++)
        if (i == THREADS_MAX || pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i) != 0)
            return false;
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return true;
}

int end_with_dropped(bool good)
{
    if (good)
        printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return !good;
}

sonde_handle tagged(const char *name, const char *key, long value, enum sonde_kind kind)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    struct sonde_tag tag = {key, text};
    struct sonde_metric m = {.name = name, .kind = kind, .tags = &tag, .tag_count = 1};
    return sonde_define(&m);
}

static const struct mode {
    const char *name;
    int (*run)(void);
} modes[] = {
    {"slow", mode_slow},
    {"everything", mode_everything},
    {"as", mode_as},
    {"no_memory", mode_no_memory},
    {"cancels", mode_cancels},
    {"pending", mode_pending},
    {"little_stack", mode_little_stack},
    {"unsealed", mode_unsealed},
    {"threads", mode_threads},
    {"waves", mode_waves},
    {"moves", mode_moves},
    {"comes_back", mode_comes_back},
    {"undelivered", mode_undelivered},
    {"crowd", mode_crowd},
    {"add_crowd", mode_add_crowd},
    {"count_into", mode_count_into},
    {"bad_amounts", mode_bad_amounts},
    {"points", mode_points},
    {"waits", mode_waits},
    {"late", mode_late},
    {"stream", mode_stream},
    {"fork", mode_fork},
    {"forks", mode_forks},
    {"fork_tight", mode_fork_tight},
    {"first_calls", mode_first_calls},
    {"clone", mode_clone},
    {"threads_of_forks", mode_threads_of_forks},
    {"forks_with_lock", mode_forks_with_lock},
    {"exec", mode_exec},
    {"cells", mode_cells},
    {"count", mode_count},
    {"count_each", mode_count_each},
    {"many_cells", mode_many_cells},
    {"groups", mode_groups},
    {"spans", mode_spans},
    {"span_waits", mode_span_waits},
    {"span_of_later_slot", mode_span_of_later_slot},
    {"span_crowd", mode_span_crowd},
    {"limits", mode_limits},
    {"config", mode_config},
    {"define", mode_define},
    {"level", mode_level},
    {"closes", mode_closes},
    {"tight", mode_tight},
    {"loud", mode_loud},
    {"locked", mode_locked},
    {"scribble", mode_scribble},
    {"free_spans", mode_free_spans},
    {"clock_is_set", mode_clock_is_set},
    {"span_pairs", mode_span_pairs},
    {"span_texts", mode_span_texts},
};

int run_rest(void)
{
    const char *name = argument_count > 0 ? arguments[0] : "";
    arguments++;
    argument_count--;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(name, modes[i].name) == 0)
            return modes[i].run();
    return 2;
}

int main(int argc, char **argv)
{
    arguments = argv + 1;
    argument_count = argc - 1;
    return run_rest();
}
