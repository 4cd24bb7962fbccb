// emitter_limits.c - modes of the program `emitter`: limits, configuration, and a short supply of
// memory, descriptors and rights.
#include "emitter.h"

#include "emit/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

// limits: names, tags and texts at and above their limits; prints handles as 0 or 1
int mode_limits(void)
{
    static char name[300], key[200], value[2000], text[6000];
    struct sonde_tag tags[20];
    struct sonde_metric m = {.name = name, .tags = tags};
    memset(name, 'n', 255);
    memset(text, 't', 4096);
    m.help = text;
    printf("name255=%d\n", sonde_define(&m) != 0);
    text[4096] = 't';
    name[254] = 'm';
    printf("help4097=%d\n", sonde_define(&m) != 0); // truncated
    name[255] = 'n';
    m.help = NULL;
    printf("name256=%d\n", sonde_define(&m) != 0);
    printf("empty=%d\nblank=%d\nnull=%d\nletters=%d\n", sonde_gauge("", "") != 0,
           sonde_gauge("a b", "") != 0, sonde_gauge(NULL, "") != 0,
           sonde_gauge("größe/µ.a_b:c-d", NULL) != 0);
    printf("unit32=%d\nunit33=%d\n", sonde_gauge("u32", "12345678901234567890123456789012") != 0,
           sonde_gauge("u33", "123456789012345678901234567890123") != 0);
    memset(key, 'k', 128);
    memset(value, 'v', 1024);
    m.name = "tagged";
    m.tag_count = 1;
    tags[0] = (struct sonde_tag){key, value};
    printf("tag=%d\n", sonde_define(&m) != 0);
    value[1024] = 'v';
    printf("value1025=%d\n", sonde_define(&m) != 0);
    value[1024] = 0;
    key[128] = 'k';
    printf("key129=%d\n", sonde_define(&m) != 0);
    key[128] = 0;
    static char keys[20][8];
    for (int i = 0; i < 20; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        tags[i] = (struct sonde_tag){keys[i], "v"};
    }
    m.tag_count = 15;
    printf("tags15=%d\n", sonde_define(&m) != 0);
    m.tag_count = 16; // host is one more
    printf("tags16=%d\n", sonde_define(&m) != 0);
    m.tag_count = 2;
    m.name = "ordered";
    sonde_handle ordered = sonde_define(&m);
    m.tags = (struct sonde_tag[]){{"k1", "v"}, {"empty", ""}, {"k0", "v"}};
    m.tag_count = 3;
    printf("order=%d\n", ordered && sonde_define(&m) == ordered);
    m.tags = tags;
    m.tag_count = 2;
    tags[1].key = "k0";
    printf("twice=%d\n", sonde_define(&m) != 0);
    m.kind = (enum sonde_kind)7;
    m.tag_count = 0;
    printf("kind=%d\n", sonde_define(&m) != 0);
    static sonde_handle many[4097];
    for (int i = 0; i < 4097; i++)
        many[i] = tagged("member", "i", i, SONDE_GAUGE);
    static double row[4097];
    sonde_handle full = sonde_group(many, 4096);
    printf("group4096=%d\ngroup4097=%d\n", full != 0, sonde_group(many, 4097) != 0);
    sonde_emit_group(full, row);
    memset(name, 's', 299);
    name[299] = 0;
    memset(text, 'x', 5000);
    sonde_span_begin(name, key, value, "bad key", "v");
    sonde_span_end();
    sonde_annotate(text);
    sonde_annotate("sixteen", "1", "v", "2", "v", "3", "v", "4", "v", "5", "v", "6", "v", "7", "v",
                   "8", "v", "9", "v", "10", "v", "11", "v", "12", "v", "13", "v", "14", "v", "15",
                   "v", "16", "v", "17", "v");
    return 0;
}

// config
int mode_config(void)
{
    static char long_value[1026];
    struct sonde_tag many[5];
    memset(long_value, ' ', 1025);
    sonde_config("lr", "0.01", "text", "a b\nc\\", "bad key", "v", "long", long_value, "odd");
    long_value[1024] = 0;
    for (int i = 0; i < 5; i++)
        many[i] = (struct sonde_tag){(const char *const[]){"a", "b", "c", "d", "e"}[i], long_value};
    many[4].value = "last";
    sonde_config_tags(many, 5);
    sonde_config_tags(NULL, 0);
    return 0;
}

// define COUNT: defines this many metrics, with a point each
int mode_define(void)
{
    long on = 0;
    for (long i = 0; i < number(0); i++) {
        char name[32];
        snprintf(name, sizeof name, "m%ld", i);
        sonde_handle h = sonde_gauge(name, "");
        on += h != 0;
        sonde_emit(h, (double)i);
    }
    printf("on=%ld\ndropped=%llu\n", on, (unsigned long long)sonde_dropped());
    return 0;
}

static int open_descriptors(void)
{
    struct stat st;
    int open = 0;
    for (int fd = 0; fd < 256; fd++)
        open += fstat(fd, &st) == 0;
    return open;
}

// level LEVEL-OF-METRIC: prints handle and level, and the number of descriptors in use
int mode_level(void)
{
    int open = open_descriptors();
    struct sonde_metric m = {.name = "leveled", .level = (int)number(0)};
    sonde_handle h = sonde_define(&m);
    sonde_emit(h, 1);
    sonde_set(h, 1);
    sonde_add(h, 1);
    sonde_span_begin("span");
    sonde_span_end();
    sonde_annotate("note");
    sonde_emit_group(sonde_group(&h, 1), (double[]){1});
    printf("handle=%d\nlevel=%d\n", h != 0, sonde_level());
    printf("open=%d\n", open_descriptors() - open);
    return 0;
}

// closes: closes all descriptors, reuses their numbers for its own socket pair, and continues to
// emit; no data of libsonde may appear in the pair
int mode_closes(void)
{
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 1);
    say("first");
    wait_for_line();
    int mine[2];
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, mine) != 0)
        return 1;
    mine[0] = fcntl(mine[0], F_DUPFD, 64); // to another number
    mine[1] = fcntl(mine[1], F_DUPFD, 64);
    for (int fd = 3; fd < 64; fd++)
        dup2(mine[0], fd);
    say("closed");
    for (long i = 0; i < 1000000; i++)
        sonde_emit(h, (double)i);
    char c;
    int lost = 0;
    for (int fd = 3; fd < 64; fd++)
        lost += fcntl(fd, F_GETFD) < 0;
    printf("stray=%d\nlost=%d\nsent=1000001\n", read(mine[1], &c, 1) == 1, lost);
    fflush(stdout);
    wait_for_line();
    return 0;
}

// loud: makes calls that are refused, with standard error redirected to standard output
int mode_loud(void)
{
    dup2(1, 2);
    sonde_emit(sonde_gauge("not a name", ""), 1);
    say("end");
    return 0;
}

// locked: in a program with locked memory; prints how much shared memory it takes
int mode_locked(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        say("cannot lock");
    sonde_emit(sonde_gauge("value", ""), 1);
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "RssShmem: %ld", &kib);
    if (f)
        fclose(f);
    printf("shared=%ld\n", kib);
    return 0;
}

// small limits: address space and file size are too small for a segment of the default size
int mode_tight(void)
{
    struct rlimit limit = {(rlim_t)number(0) << 20, (rlim_t)number(0) << 20}, now;
    if ((int)number(1)) {
        setrlimit(RLIMIT_FSIZE, &limit);
        getrlimit(RLIMIT_FSIZE, &now);
    } else {
        setrlimit(RLIMIT_AS, &limit);
        getrlimit(RLIMIT_AS, &now);
    }
    // qemu-user accepts a limit of the address space and ignores it.
    printf("limited=%d\n", now.rlim_cur == limit.rlim_cur);
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 1);
    printf("handle=%d\n", h != 0);
    return 0;
}

// Finds the mapping of the library's segment, or of the agent's area.
static char *find_mapping(const char *name, size_t *bytes)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512], *found = NULL;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (strstr(line, name) && sscanf(line, "%lx-%lx", &from, &to) == 2) {
            found = (char *)from;
            *bytes = to - from;
        }
    }
    if (f)
        fclose(f);
    return found;
}

static uint64_t nasty(void)
{
    static const uint64_t values[] = {0,         1,        7,          8,          0xff,
                                      0xffff,    0x10000,  0xffffffff, UINT64_MAX, UINT64_MAX - 7,
                                      INT64_MAX, 1u << 20, 1u << 17};
    uint64_t r = random_u64();
    return r % 3 ? values[r / 3 % (sizeof values / sizeof *values)] : random_u64();
}

// scribble SEED ROUNDS: writes garbage to sensitive places
int mode_scribble(void)
{
    random_state = (uint64_t)number(0);
    size_t bytes = 0, agent_bytes = 0;
    sonde_handle h = sonde_gauge("scribbled", "");
    sonde_add(sonde_counter("scribbled_total", ""), 1);
    sonde_span_begin("scribbled span", "k", "v");
    sonde_span_end();
    for (int i = 0; i < 1000; i++)
        sonde_emit(h, i);
    char *base = find_mapping(SEGMENT_LINK, &bytes),
         *agent = find_mapping(SEGMENT_AGENT_LINK, &agent_bytes);
    if (!base || !agent)
        return 1;
    struct segment_header *header = (struct segment_header *)base;
    struct segment_layout at = segment_layout(header->slots, header->ring_bytes);
    say("ready");
    wait_for_line();
    for (long round = 0; round < number(1); round++) {
        uint64_t r = random_u64();
        char *where;
        switch (r % 8) {
        case 0:
            where =
                base + offsetof(struct segment_header, definitions_bytes) + random_u64() % 5 * 8;
            break;
        case 1:
            where = base + random_u64() % 256 * 8;
            break;
        case 2:
            where = agent + random_u64() % 32 * 8;
            break;
        case 3:
            where = base + at.definitions + random_u64() % 64 * 8;
            break;
        case 4:
            where = base + at.gauges + random_u64() % 64 * 8;
            break;
        case 5:
            where = base + at.slots + random_u64() % 8 * 8; // the ring's head
            break;
        default:
            where = base + at.slots + SLOT_DATA + random_u64() % 4096 * 8;
        }
        uint64_t value = nasty();
        if (r % 8 >= 6 && random_u64() % 2) // a plausible header
            value = segment_word((enum segment_type)(random_u64() % 8), random_u64() % 4,
                                 random_u64() % 64, (uint32_t)(random_u64() % 4));
        memcpy(where, &value, sizeof value);
        if (random_u64() % 16 == 0) // sometimes the head is too far ahead
            atomic_fetch_add(&((struct ring *)(void *)(base + at.slots))->head,
                             random_u64() % 64 * 8);
        if (random_u64() % 64 == 0)
            sched_yield();
    }
    if (fallocate(3, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) != 0 &&
        errno == EBADF)
        return 1;
    say("done");
    wait_for_line();
    return 0;
}

static void *thread_does_everything(void *index)
{
    sonde_handle value = tagged("value", "thread", (long)(intptr_t)index, SONDE_GAUGE);
    sonde_handle total = sonde_counter("work_total", ""), level = sonde_gauge("level", "");
    sonde_handle group = sonde_group((sonde_handle[]){value, level}, 2);
    for (long i = 0; i < number(0); i++) {
        sonde_emit(value, (double)i);
        sonde_emit_at(value, (double)i, i);
        sonde_emit_group(group, (double[]){1, 2});
        sonde_add(total, 1);
        sonde_set(level, (double)i);
        sonde_span_begin("step", "k", "v");
        sonde_annotate("note");
        sonde_span_end();
        if (i % 64 == 0)
            tagged("defined", "i", i, SONDE_GAUGE);
    }
    return NULL;
}

// everything ROUNDS: four threads, all functions
int mode_everything(void)
{
    sonde_level();
    say("ready");
    wait_for_line();
    int code = end_with_dropped(run_threads(4, thread_does_everything));
    if (!code)
        printf("end\n");
    return code;
}

static void *thread_is_cancelled(void *paths)
{
    int unused;
    pthread_setcanceltype(number(1) ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED,
                          &unused);
    for (long i = 0;; i++) {
        char name[32];
        snprintf(name, sizeof name, "cancelled_%ld", i % 1000);
        sonde_handle h = sonde_gauge(name, "");
        sonde_emit(h, 1);
        sonde_add(h, 1);
        sonde_set(h, 1);
        sonde_group(&h, 1);
        sonde_gauge("not a name", "");
        sonde_span_begin("span");
        sonde_annotate("note");
        sonde_span_end();
        if (i % 16 == 0)
            sonde_connect(((char **)paths)[i / 16 % 2], 1);
        pthread_testcancel(); // the calls above need not be cancellation points
    }
    return NULL;
}

// cancels THREADS ASYNCHRONOUS SEED PATH PATH: threads that are cancelled anywhere in the slow
// paths. After a line of input, everything still works: definitions, points, fork(). An alarm ends
// it if a lock has no owner any more.
int mode_cancels(void)
{
    enum { ALARM_S = 60, SPINS = 1 << 19 };
    pthread_t t;
    random_state = (uint64_t)number(2);
    alarm(ALARM_S);
    sonde_emit(sonde_gauge("before", ""), 1); // gives this thread a ring of its own
    for (long i = 0; i < number(0); i++) {
        if (pthread_create(&t, NULL, thread_is_cancelled, &arguments[3]) != 0)
            return 1;
        for (volatile uint64_t spin = random_u64() % SPINS; spin; spin--)
            ;
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    alarm(0);
    say("cancelled");
    wait_for_line();
    alarm(ALARM_S);
    sonde_handle after = sonde_gauge("after", "");
    sonde_connect(arguments[3], 1);
    sonde_emit(after, 1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sonde_emit(after, 2);
        sonde_emit(sonde_gauge("child", ""), 1);
        _exit(0);
    }
    int status;
    return waitpid(pid, &status, 0) != pid || status != 0 || !after;
}

// The two call each function, with texts and tags at their limits and beyond.
static char long_text[SEGMENT_TEXT_MAX + 100], long_value[SEGMENT_VALUE_MAX + 1];

static void use_metrics(void)
{
    memset(long_text, 'x', sizeof long_text - 1);
    memset(long_value, 'v', sizeof long_value - 1);
    sonde_handle h = tagged("each_function", "key", 1, SONDE_GAUGE);
    struct sonde_tag tags[SEGMENT_TAGS_MAX];
    for (int i = 0; i < SEGMENT_TAGS_MAX; i++)
        tags[i] = (struct sonde_tag){(const char *[]){"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                                      "j", "k", "l", "m", "n", "o", "p"}[i],
                                     long_value};
    struct sonde_metric m = {.name = "many_tags", .help = long_text, .tags = tags, .tag_count = 12};
    sonde_emit(sonde_define(&m), 1);
    m.tag_count = SEGMENT_TAGS_MAX + 1; // too many
    sonde_define(&m);
    for (int i = 0; i < 3; i++) {
        sonde_emit(h, i);
        sonde_add(h, i);
        sonde_set(h, i);
    }
    sonde_emit_group(sonde_group(&h, 1), (double[]){1});
    sonde_check((char[64]){0}, 64);
    sonde_dropped();
}

static void use_events(void)
{
    const struct sonde_tag tags[] = {{"key", long_value}, {"other", long_value}};
    sonde_span_begin("span", "key", long_value, "number", "2");
    sonde_span_end();
    sonde_span_at("span", 1, 2, tags, 2);
    struct sonde_span span = sonde_span_open("span", tags, 2, NULL);
    sonde_span_close(&span, "span", tags, 2);
    sonde_annotate("note", "key", long_value);
    sonde_annotate(long_text);
    sonde_config("key", long_value, "other", "value", "third", long_value);
}

// Calls each function, with cells and a ring that grow several times.
static void *thread_with_pending_cancellation(void *path)
{
    enum { METRICS = 3000, POINTS = 200000 };
    int unused;
    pthread_cancel(pthread_self());
    sonde_connect(path, 1);
    for (int i = 0; i < METRICS; i++) {
        sonde_handle h = tagged("pending", "number", i, SONDE_COUNTER);
        sonde_add(h, 1);
        sonde_set(h, 1);
    }
    sonde_handle h = sonde_gauge("points", "");
    sonde_handle group = sonde_group(&h, 1);
    for (int i = 0; i < POINTS; i++) {
        sonde_emit(h, i);
        sonde_emit_group(group, (double[]){i});
    }
    sonde_gauge("not a name", "");
    use_metrics();
    use_events();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &unused);
    return path;
}

// pending PATH: no function is a cancellation point.
int mode_pending(void)
{
    pthread_t t;
    void *result;
    sonde_emit(sonde_gauge("before", ""), 1);
    if (pthread_create(&t, NULL, thread_with_pending_cancellation, arguments[0]) != 0)
        return 1;
    pthread_join(t, &result);
    return result != arguments[0];
}

// little_stack PATH: prints how many bytes of stack the functions need, at most. They run on a
// stack of their own, which is painted before.
enum { STACK_BYTES = 256 << 10, PAINT = 0xa5 };
static unsigned char *stack;
static ucontext_t here, there;

static void start_libsonde(void)
{
    sonde_connect(arguments[0], 1);
}

static void print_stack(const char *name)
{
    size_t untouched = 0;
    while (stack[untouched] == PAINT)
        untouched++;
    printf("%s=%zu\n", name, STACK_BYTES - untouched);
    fflush(stdout);
}

static void fork_on_it(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        sonde_emit(sonde_gauge("child", ""), 1);
        print_stack("child");
        _exit(0);
    }
    waitpid(pid, &status, 0);
}

static void on_a_painted_stack(const char *name, void (*run)(void))
{
    memset(stack, PAINT, STACK_BYTES);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &here;
    makecontext(&there, run, 0);
    swapcontext(&here, &there);
    print_stack(name);
}

int mode_little_stack(void)
{
    stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return 1;
    setenv("SONDE_TAGS", "site=here,room=2", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("PMI_RANK", "2", 1);
    setenv("PMI_SIZE", "4", 1); // libsonde looks for the launcher that is nearer
    on_a_painted_stack("start", start_libsonde);
    on_a_painted_stack("metrics", use_metrics);
    on_a_painted_stack("events", use_events);
    on_a_painted_stack("fork", fork_on_it);
    return 0;
}

// as UID MODE …: drops privileges first
int mode_as(void)
{
    uid_t uid = (uid_t)number(0);
    arguments++;
    argument_count--;
    if (uid != geteuid() &&
        (setgid(uid) != 0 || setuid(uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
        return 1;
    return run_rest();
}

// no_memory: after half of the work, no more memory can be reserved, as with vm.overcommit_memory=2
// at the limit. Values that do not fit into the existing memory count as dropped.
int mode_no_memory(void)
{
    enum { POINTS = 20000 };
    sonde_handle before = sonde_gauge("before", ""), total = sonde_counter("total", "");
    sonde_emit(before, 1);
    sonde_add(total, 1);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    long defined = 0;
    for (int i = 0; i < POINTS; i++)
        sonde_emit(before, i);
    for (int i = 0; i < 5000; i++) {
        sonde_handle h = tagged("more", "i", i, SONDE_GAUGE);
        defined += h != 0;
        sonde_set(h, 1);
        sonde_add(h, 1);
    }
    sonde_add(total, 1);
    printf("sent=%d\ndropped=%llu\ndefined=%ld\n", POINTS + 1, (unsigned long long)sonde_dropped(),
           defined);
    say("first");
    wait_for_line();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) { // cannot get a segment
        sonde_emit(before, 1);
        _exit(sonde_level());
    }
    int status;
    return waitpid(pid, &status, 0) != pid || status != 0;
}

// unsealed MODE …: without F_SEAL_FUTURE_WRITE, as on Linux before 5.1
int mode_unsealed(void)
{
    enum { SEAL_FUTURE_WRITE = 0x10 };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_ADD_SEALS, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SEAL_FUTURE_WRITE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    return run_rest();
}
