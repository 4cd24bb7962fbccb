// lab.c - implements lab.h.
#include "lab.h"

#include "store/read.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sonde.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

void lab_make(struct lab *lab)
{
    *lab = (struct lab){.folder = "/tmp/sonde-agent-XXXXXX", .control = -1};
    assert_non_null(mkdtemp(lab->folder));
    lab->options = (struct agent_options){
        .folder = lab->folder, .host = "lab", .job = "test", .level = 1, .rate_s = 0.05};
}

static int remove_each(const char *path, const struct stat *about, int type, struct FTW *at)
{
    (void)about, (void)type, (void)at;
    return remove(path);
}

void lab_free(struct lab *lab)
{
    if (lab->pid)
        lab_end(lab, SIGKILL);
    assert_int_equal(nftw(lab->folder, remove_each, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void *lab_share(const struct lab *lab, size_t size, char path[LAB_PATH_MAX])
{
    snprintf(path, LAB_PATH_MAX, "%s/shared", lab->folder);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    close(fd);
    return lab_shared(path, size);
}

void *lab_shared(const char *path, size_t size)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        _exit(6);
    close(fd);
    return at;
}

void lab_fork(struct lab *lab)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fflush(NULL);
    lab->pid = fork();
    assert_true(lab->pid >= 0);
    if (lab->pid == 0) {
        // As after an exec, no descriptor of the test stays open.
        for (int fd = 3; fd < 1024; fd++)
            if (fd != ends[1] && fd != lab->options.listening_fd && fd != lab->options.keeper_fd)
                close(fd);
        if (lab->file_limit_bytes) {
            struct rlimit limit = {lab->file_limit_bytes, lab->file_limit_bytes};
            if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
                _exit(125);
        }
        lab->options.control_fd = ends[1];
        exit(agent_run(&lab->options, NULL));
    }
    close(ends[1]);
    lab->control = ends[0];
}

bool lab_start(struct lab *lab)
{
    lab_fork(lab);
    size_t size = 0;
    while (size + 1 < sizeof lab->said) {
        ssize_t got = read(lab->control, lab->said + size, sizeof lab->said - size - 1);
        assert_true(got >= 0);
        size += (size_t)got;
        if (got == 0 || memchr(lab->said, '\n', size))
            break;
    }
    lab->said[size] = 0;
    bool ready = strncmp(lab->said, "ready\n", strlen("ready\n")) == 0; // other lines may follow
    if (!ready)
        fprintf(stderr, "the agent did not start: %s\n", lab->said);
    return ready;
}

int lab_end(struct lab *lab, int signal_number)
{
    int status;
    if (signal_number)
        assert_int_equal(kill(lab->pid, signal_number), 0);
    else
        close(lab->control);
    assert_int_equal(waitpid(lab->pid, &status, 0), lab->pid);
    if (signal_number)
        close(lab->control);
    lab->pid = 0;
    lab->control = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void lab_stop(struct lab *lab)
{
    int status;
    assert_int_equal(kill(lab->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(lab->pid, &status, WUNTRACED), lab->pid);
    assert_true(WIFSTOPPED(status));
}

int lab_connect(const struct lab *lab)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/agent.sock", lab->folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

const char *lab_put(const struct lab *lab, const char *text)
{
    static char reply[1 << 17];
    int fd = lab_connect(lab);
    size_t size = strlen(text), got_all = 0;
    assert_int_equal(write(fd, text, size), size);
    shutdown(fd, SHUT_WR);
    for (ssize_t got; (got = read(fd, reply + got_all, sizeof reply - 1 - got_all)) > 0;)
        got_all += (size_t)got;
    reply[got_all] = 0;
    close(fd);
    return reply;
}

// ---- reading the file ----

static void series_name(struct store_snapshot *s, uint32_t series, struct buf *out)
{
    struct store_series_info info;
    assert_true(store_series_get(s, series, &info));
    out->size = 0;
    buf_add_str(out, store_metric_get(s, info.metric)->name);
    for (uint32_t i = 0; i < info.label_count; i++)
        buf_printf(out, "%c%.*s=%.*s", i ? ',' : '{', STR_ARG(info.labels[i].key),
                   STR_ARG(info.labels[i].value));
    buf_add_char(out, '}');
}

static size_t walk(const struct lab *lab, const char *series, double *last, double *sum, bool *seen)
{
    char path[256];
    struct store_reader *reader;
    struct error e;
    size_t points = 0;
    snprintf(path, sizeof path, "%s/lab.sonde", lab->folder);
    if (store_reader_open(path, &reader, &e) != 0)
        return 0;
    struct store_snapshot *s = store_snapshot_open(reader);
    assert_non_null(s);
    struct buf name = {0};
    for (uint32_t i = 0; i < store_series_count(s); i++) {
        series_name(s, i, &name);
        if (strcmp(buf_cstr(&name), series) != 0)
            continue;
        struct store_cursor *cursor = store_cursor_open(s, i, INT64_MIN, INT64_MAX);
        assert_non_null(cursor);
        struct store_run run;
        while (store_cursor_next(cursor, &run) > 0) {
            const int64_t *t_ns;
            const double *values;
            size_t count;
            assert_int_equal(store_cursor_points(cursor, &t_ns, &values, &count), 0);
            for (size_t k = 0; k < count; k++) {
                *sum += values[k];
                *last = values[k];
                if (seen && values[k] >= 0 && values[k] < LAB_VALUES_MAX)
                    seen[(size_t)values[k]] = true;
            }
            points += count;
        }
        store_cursor_close(cursor);
    }
    buf_free(&name);
    store_snapshot_close(s);
    store_reader_close(reader);
    return points;
}

size_t lab_points(const struct lab *lab, const char *series, double *last)
{
    double unused, sum = 0;
    return walk(lab, series, last ? last : &unused, &sum, NULL);
}

double lab_sum(const struct lab *lab, const char *series)
{
    double unused, sum = 0;
    walk(lab, series, &unused, &sum, NULL);
    return sum;
}

size_t lab_distinct(const struct lab *lab, const char *series)
{
    static bool seen[LAB_VALUES_MAX];
    double last, sum = 0;
    size_t count = 0;
    memset(seen, 0, sizeof seen);
    walk(lab, series, &last, &sum, seen);
    for (size_t i = 0; i < LAB_VALUES_MAX; i++)
        count += seen[i];
    return count;
}

// Waits until `count_now` returns this number, ten seconds at most.
static void await(const struct lab *lab, const char *series, size_t count,
                  size_t (*count_now)(const struct lab *, const char *))
{
    enum { PAUSE_US = 5000, PAUSES = 2000 };
    size_t got = 0;
    for (int i = 0; i < PAUSES; i++) {
        got = count_now(lab, series);
        if (got >= count)
            return;
        usleep(PAUSE_US);
    }
    fail_msg("%s has %zu points, expected %zu", series, got, count);
}

static size_t points_now(const struct lab *lab, const char *series)
{
    return lab_points(lab, series, NULL);
}

void lab_await_points(const struct lab *lab, const char *series, size_t count)
{
    await(lab, series, count, points_now);
}

void lab_await_distinct(const struct lab *lab, const char *series, size_t count)
{
    await(lab, series, count, lab_distinct);
}

// ---- an emitting program ----

pid_t lab_emitter(const struct lab *lab, size_t points, int *out, int *in)
{
    int said[2], held[2];
    assert_int_equal(pipe2(said, O_CLOEXEC), 0);
    assert_int_equal(pipe2(held, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char socket_path[128], count[32];
        snprintf(socket_path, sizeof socket_path, "%s/agent.sock", lab->folder);
        snprintf(count, sizeof count, "%zu", points);
        setenv("SONDE_SOCKET", socket_path, 1);
        setenv("SONDE_LEVEL", "1", 1);
        dup2(held[0], 0);
        dup2(said[1], 1);
        execl("/proc/self/exe", "test_agent", "emit", count, (char *)NULL);
        _exit(127);
    }
    close(said[1]);
    close(held[0]);
    *out = said[0];
    if (in)
        *in = held[1];
    else
        close(held[1]);
    return pid;
}

int lab_emit(const char *points)
{
    sonde_handle emitted = sonde_gauge("emitted", ""), cell = sonde_counter("steps_total", "");
    size_t count = strtoul(points, NULL, 10);
    char byte = '.';
    for (size_t i = 1; i <= count; i++) {
        sonde_emit(emitted, (double)i);
        sonde_add(cell, 1);
    }
    if (write(1, &byte, 1) != 1)
        return 2;
    while (read(0, &byte, 1) > 0) {
        sonde_emit(emitted, (double)++count);
        if (write(1, &byte, 1) != 1)
            return 2;
    }
    return sonde_dropped() ? 3 : 0;
}
