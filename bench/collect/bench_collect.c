// bench_collect.c - the processor time of a sample of the node: of all sources of level 2, compared
// with bare preads of the same files; of the walk over processes; and of a scrape of node_exporter.
//
// A round samples every source once, then reads the same files once, so that disturbances affect
// both. The result is the median of the rounds. Sources that are sampled less often than ten times
// a second are left out.
#include "base/clock.h"
#include "collect/collect.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS = 801,
    WARM_UP_ROUNDS = 20,
    FILES_MAX = 64,
    SETS_MAX = 64,
    READ_SIZE = 1 << 20,
    SCRAPES = 5,
    PORT = 19123
};

// The interval of an agent that samples at 10 Hz.
static const int64_t INSTANT_NS = NS_PER_S / 10;

// The files behind the metrics of `files_sources`.
static const char *const paths[] = {
    "/proc/loadavg",     "/proc/stat",         "/proc/meminfo",
    "/proc/vmstat",      "/proc/pressure/cpu", "/proc/pressure/memory",
    "/proc/pressure/io", "/proc/net/dev",      "/proc/diskstats"};
static const char files_sources[] = "load,cpu,memory,vmstat,pressure,network,disk";

static double sample_us[ROUNDS], pread_us[ROUNDS], walk_us[ROUNDS], list_us[ROUNDS],
    details_us[ROUNDS], all_us[ROUNDS];
static double values[STORE_SET_SERIES_MAX];
static char contents[READ_SIZE];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *rounds)
{
    qsort(rounds, ROUNDS, sizeof *rounds, compare);
    return rounds[ROUNDS / 2];
}

static void report(const char *metric, double value, const char *unit, const char *peer,
                   double peer_value)
{
    printf("{\"bench\":\"collect\",\"metric\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", metric, value,
           unit);
    if (peer)
        printf(",\"peer\":\"%s\",\"peer_value\":%.4g,\"ratio\":%.4g", peer, peer_value,
               value / peer_value);
    printf("}\n");
    fflush(stdout);
}

// Returns the time of this thread in user and kernel mode. Waiting does not count.
static double cpu_us(void)
{
    return (double)clock_read_ns(CLOCK_THREAD_CPUTIME_ID) / NS_PER_US;
}

static struct collect *open_sources(const char *sources, uid_t uid)
{
    static const struct store_label host = {{"host", 4}, {"bench", 5}};
    const struct collect_options options = {.root = "",
                                            .labels = &host,
                                            .label_count = 1,
                                            .level = 2,
                                            .rate_s = 0.1,
                                            .folder = "/tmp",
                                            .uid = uid,
                                            .sources = sources};
    struct collect *c;
    struct error e;
    if (collect_create(&options, &c, &e) != 0) {
        fprintf(stderr, "bench: %s\n", e.text);
        exit(1);
    }
    return c;
}

static int sample_all(struct collect *c, int64_t t_ns)
{
    int given = 0;
    for (size_t set = 0; set < collect_set_count(c); set++) {
        int got = collect_sample(c, set, t_ns, values);
        given += got > 0 ? got : 0;
    }
    return given;
}

static void bench_files(void)
{
    int files[FILES_MAX], given = 0;
    size_t count = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        files[count] = open(paths[i], O_RDONLY | O_CLOEXEC);
        count += files[count] >= 0;
    }
    struct collect *c = open_sources(files_sources, getuid());
    int64_t t_ns = clock_realtime_ns();
    for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
        double from = cpu_us();
        given = sample_all(c, t_ns += INSTANT_NS);
        double sampled = cpu_us();
        ssize_t got = 0;
        for (size_t i = 0; i < count; i++)
            got += pread(files[i], contents, sizeof contents, 0);
        double read = cpu_us();
        if (round >= 0 && got > 0) {
            sample_us[round] = sampled - from;
            pread_us[round] = read - sampled;
        }
    }
    report("node metrics in a sample", given, "values", NULL, 0);
    report("processor time of a sample", median(sample_us), "us", "pread", median(pread_us));
    collect_destroy(c);
    for (size_t i = 0; i < count; i++)
        close(files[i]);
}

// Measures walks over processes that are three seconds apart. For a user without processes, the
// walk has no details to read.
static void bench_processes(void)
{
    enum { LIST_SIZE = 32768, NOBODY = 2000000001 };
    struct collect *walked = open_sources("processes", NOBODY),
                   *own = open_sources("processes", getuid());
    int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t t_ns = clock_realtime_ns();
    for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
        double times[5];
        times[0] = cpu_us();
        sample_all(walked, t_ns += 3 * (int64_t)NS_PER_S);
        times[1] = cpu_us();
        sample_all(walked, t_ns + INSTANT_NS);
        times[2] = cpu_us();
        lseek(folder, 0, SEEK_SET);
        while (getdents64(folder, contents, LIST_SIZE) > 0)
            continue;
        times[3] = cpu_us();
        // The samples are so far apart in time that each one includes the details.
        sample_all(own, t_ns + 20 * (int64_t)NS_PER_S * round);
        times[4] = cpu_us();
        if (round < 0)
            continue;
        walk_us[round] = times[1] - times[0];
        all_us[round] = times[2] - times[1];
        list_us[round] = times[3] - times[2];
        details_us[round] = times[4] - times[3];
    }
    double list = median(list_us);
    report("count of processes, walk", median(walk_us), "us", "getdents64 of /proc", list);
    report("count of processes, nobody came or went", median(all_us), "us", "getdents64 of /proc",
           list);
    sample_all(own, t_ns + 30 * (int64_t)NS_PER_S * ROUNDS);
    report("processes of this user", values[0], "processes", NULL, 0);
    report("count and details of this user's processes", median(details_us), "us",
           "getdents64 of /proc", list);
    close(folder);
    collect_destroy(walked);
    collect_destroy(own);
}

static void bench_everything(void)
{
    struct collect *c = open_sources("", getuid());
    int64_t t_ns = clock_realtime_ns();
    int most = 0;
    for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
        double from = cpu_us();
        int given = sample_all(c, t_ns += INSTANT_NS);
        double sampled = cpu_us();
        most = given > most ? given : most;
        if (round >= 0)
            all_us[round] = sampled - from;
    }
    double mean = 0;
    for (int i = 0; i < ROUNDS; i++)
        mean += all_us[i] / ROUNDS;
    report("all sources of level 2, most values in a sample", most, "values", NULL, 0);
    report("all sources of level 2 at 10 Hz, mean of a sample", mean, "us", NULL, 0);
    collect_destroy(c);
}

// ---- node_exporter ----

static bool scrape(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool done = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                write(fd, request, sizeof request - 1) == sizeof request - 1;
    size_t size = 0;
    for (ssize_t got = 1; done && got > 0; size += (size_t)(got > 0 ? got : 0))
        got = read(fd, contents, sizeof contents);
    if (fd >= 0)
        close(fd);
    return done && size > 1000;
}

static double process_cpu_us(pid_t pid)
{
    char text[1024];
    double sum = 0;
    // Adds up the times of all threads.
    char command[128];
    snprintf(command, sizeof command, "cat /proc/%d/task/*/schedstat 2>/dev/null", pid);
    FILE *f = popen(command, "re");
    while (f && fgets(text, sizeof text, f))
        sum += strtod(text, NULL) / NS_PER_US;
    if (f)
        pclose(f);
    return sum;
}

static void bench_node_exporter(double sample)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        char listen[64];
        snprintf(listen, sizeof listen, "--web.listen-address=127.0.0.1:%d", PORT);
        execlp("prometheus-node-exporter", "prometheus-node-exporter", listen, (char *)NULL);
        _exit(127);
    }
    bool up = false;
    for (int tries = 0; pid > 0 && tries < 100 && !up && waitpid(pid, NULL, WNOHANG) == 0;
         tries++) {
        usleep(30000);
        up = scrape();
    }
    if (!up) {
        fprintf(stderr, "bench: prometheus-node-exporter is not installed: left out\n");
    } else {
        double before = process_cpu_us(pid);
        for (int i = 0; i < SCRAPES; i++)
            scrape();
        report("processor time of a sample", sample, "us", "node_exporter",
               (process_cpu_us(pid) - before) / SCRAPES);
    }
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

// For agent.py: does only the preads, at the agent's rate, until it is killed.
static _Noreturn void only_preads(double rate_s)
{
    int files[FILES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        files[count] = open(paths[i], O_RDONLY | O_CLOEXEC);
        count += files[count] >= 0;
    }
    int64_t rate_ns = (int64_t)(rate_s * NS_PER_S);
    for (;;) {
        int64_t next_ns = (clock_realtime_ns() / rate_ns + 1) * rate_ns;
        struct timespec at = {.tv_sec = next_ns / NS_PER_S, .tv_nsec = next_ns % NS_PER_S};
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL);
        for (size_t i = 0; i < count; i++)
            if (pread(files[i], contents, sizeof contents, 0) < 0)
                exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "preads") == 0)
        only_preads(strtod(argv[2], NULL));
    bench_files();
    bench_processes();
    bench_everything();
    bench_node_exporter(median(sample_us));
}
