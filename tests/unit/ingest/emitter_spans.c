// emitter_spans.c - modes of the program `emitter`: spans.
#include "emitter.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// spans
int mode_spans(void)
{
    sonde_span_end(); // no span is open
    sonde_span_begin("job", "job", "42");
    sonde_span_begin("epoch", "number", "1", "phase", "train");
    sonde_span_end();
    sonde_span_begin("epoch", "number", "2", "odd");
    sonde_annotate("half time", "file", "ck-1");
    sonde_span_end();
    sonde_span_end();
    sonde_span_end(); // one more than was opened
    struct sonde_tag tag = {"k", "v"};
    sonde_span_at("past", 1000, 2000, &tag, 1);
    for (int i = 0; i < 100; i++)
        sonde_span_begin("deep");
    for (int i = 0; i < 100; i++)
        sonde_span_end();
    sonde_span_begin("after");
    sonde_span_end();
    sonde_span_begin("open");
    return 0;
}

static void *opens(void *span)
{
    *(struct sonde_span *)span = sonde_span_open("of a later slot", NULL, 0, NULL);
    return NULL;
}

static void *closes(void *span)
{
    sonde_span_close(span, "moved", NULL, 0);
    return NULL;
}

// free_spans: spans that overlap, move between threads, and that a forked child may not close
int mode_free_spans(void)
{
    struct sonde_tag tag = {"k", "v"};
    struct sonde_span a = sonde_span_open("a", &tag, 1, NULL),
                      b = sonde_span_open("b", NULL, 0, &a);
    struct sonde_span moved = sonde_span_open("moved", NULL, 0, &b), none = {0};
    sonde_span_close(&a, "a", &tag, 1);
    sonde_span_close(&none, "none", NULL, 0);
    pthread_t t;
    if (pthread_create(&t, NULL, closes, &moved) != 0 || pthread_join(t, NULL) != 0)
        return 1;
    struct sonde_span begun = sonde_span_open_at("begun", 1000, &tag, 1, &b);
    sonde_span_close_at(&begun, "begun", 2000, &tag, 1);
    sonde_span_open_at("begun and open", 3000, NULL, 0, NULL);
    // one end of each is given, the other one is now
    struct sonde_span start_given = sonde_span_open_at("start given", 4000, NULL, 0, &a),
                      end_given = sonde_span_open("end given", NULL, 0, &start_given);
    sonde_span_close(&start_given, "start given", NULL, 0);
    sonde_span_close_at(&end_given, "end given", INT64_C(4000000000000000000), NULL, 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sonde_span_close(&b, "b", NULL, 0);
        struct sonde_span own = sonde_span_open("child", NULL, 0, &b);
        sonde_span_close(&own, "child", NULL, 0);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return 0;
}

// The linker finds this program's clock first. Its wall clock may be set.
static _Atomic time_t wall_ahead_s;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_REALTIME)
        t->tv_sec += wall_ahead_s;
    return failed;
}

// clock_is_set: spans that are open while the wall clock is set forward by an hour
int mode_clock_is_set(void)
{
    struct sonde_span free = sonde_span_open("free", NULL, 0, NULL);
    sonde_span_begin("of a thread");
    wall_ahead_s = 3600;
    sonde_span_end();
    sonde_span_close(&free, "free", NULL, 0);
    return 0;
}

// span_of_later_slot: a span that a second thread opens and the first one closes, before the agent
// reads
int mode_span_of_later_slot(void)
{
    struct sonde_span span, first = sonde_span_open("first", NULL, 0, NULL);
    pthread_t t;
    if (pthread_create(&t, NULL, opens, &span) != 0 || pthread_join(t, NULL) != 0)
        return 1;
    sonde_span_close(&span, "of a later slot", NULL, 0);
    sonde_span_close(&first, "first", NULL, 0);
    say("written");
    wait_for_line();
    return 0;
}

// span_crowd SEED: threads that open spans and close those of all threads, at random; then prints
// which are open
enum { CROWD_SPANS = 300, CROWD_THREADS = 4 };

static struct {
    pthread_mutex_t mutex;
    struct sonde_span spans[CROWD_SPANS];
    char state[CROWD_SPANS + 1]; // by span: 'o' open, 'c' closed
    unsigned count;
} crowd_of_spans = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// Takes one random step; returns false when all spans are used.
static bool crowd_of_spans_step(void)
{
    char name[16];
    unsigned known = crowd_of_spans.count, which = known ? (unsigned)(random_u64() % known) : 0;
    if (known == CROWD_SPANS)
        return false;
    if (known == 0 || random_u64() % 2) {
        snprintf(name, sizeof name, "s%u", known);
        crowd_of_spans.spans[known] = sonde_span_open(name, NULL, 0, NULL);
        crowd_of_spans.state[known] = 'o';
        crowd_of_spans.count++;
    } else if (crowd_of_spans.state[which] == 'o') {
        snprintf(name, sizeof name, "s%u", which);
        sonde_span_close(&crowd_of_spans.spans[which], name, NULL, 0);
        crowd_of_spans.state[which] = 'c';
    }
    return true;
}

static void *crowd_of_spans_member(void *unused)
{
    (void)unused;
    for (bool more = true; more;) {
        pthread_mutex_lock(&crowd_of_spans.mutex);
        more = crowd_of_spans_step();
        useconds_t pause = random_u64() % 8 ? 0 : 1000;
        pthread_mutex_unlock(&crowd_of_spans.mutex);
        usleep(pause);
    }
    return NULL;
}

int mode_span_crowd(void)
{
    random_state = (uint64_t)number(0);
    if (!run_threads(CROWD_THREADS, crowd_of_spans_member))
        return 1;
    printf("state=%s\n", crowd_of_spans.state);
    say("written");
    wait_for_line();
    return 0;
}

// span_waits: a span that stays open across agents
int mode_span_waits(void)
{
    sonde_span_begin("long", "k", "v");
    say("first");
    wait_for_line();
    sonde_span_end();
    return 0;
}

// span_pairs: before the agent reads, ten spans at once, one whose end is 40 records after its
// begin, and an open one
int mode_span_pairs(void)
{
    enum { AT_ONCE = 10, BETWEEN = 40 };
    struct sonde_span spans[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++)
        spans[i] = sonde_span_open("short", NULL, 0, NULL);
    for (unsigned i = 0; i < AT_ONCE; i++)
        sonde_span_close(&spans[(i + 3) % AT_ONCE], "short", NULL, 0);
    struct sonde_span wide = sonde_span_open("wide", NULL, 0, NULL);
    sonde_handle h = sonde_gauge("between", "");
    for (unsigned i = 0; i < BETWEEN; i++)
        sonde_emit(h, i);
    sonde_span_close(&wide, "wide", NULL, 0);
    sonde_span_open("open", NULL, 0, NULL);
    say("first");
    wait_for_line();
    return 0;
}

// Returns a text of `size` letters whose NUL is the last byte before a page that cannot be read.
static const char *at_end_of_page(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        exit(1);
    char *text = pages + page - size - 1;
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + random_u64() % 26);
    return text;
}

// span_texts SEED: nested spans whose texts have all sizes up to 20; prints each text
int mode_span_texts(void)
{
    enum { SIZES = 20, INNER = 3 };
    random_state = (uint64_t)number(0);
    for (size_t size = 1; size <= SIZES; size++) {
        for (size_t i = 0; i < INNER; i++) {
            const char *name = at_end_of_page(i == 0 ? size : 1 + random_u64() % SIZES),
                       *key = at_end_of_page(i == 1 ? size : 1 + random_u64() % SIZES),
                       *value = at_end_of_page(i == 2 ? size : 1 + random_u64() % SIZES);
            sonde_span_begin(name, key, value);
            printf("%s %s=%s\n", name, key, value);
        }
        for (size_t i = 0; i < INNER; i++)
            sonde_span_end();
    }
    return 0;
}
