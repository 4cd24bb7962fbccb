// `sonde doctor`: tells users which features work on this machine.
//
// The table has one row for each check. A check has one of four results, with advice if the user
// can improve something. The output has this order:
//   missing  a feature that level 2 needs; the exit code becomes 1
//   no       a feature that works less well, or not at all, but that level 2 does not need
//   ok       a feature that works
//   absent   hardware and services that this machine does not have; one line for all of them
#include "cli/colour.h"
#include "cli/commands.h"
#include "cli/sources_here.h"

#include "base/clock.h"
#include "base/exchange.h"
#include "base/printable.h"
#include "collect/collect.h"
#include "emit/segment.h"
#include "launch/folder.h"
#include "launch/runs.h"
#include "launch/shared_memory.h"
#include "launch/trace.h"
#include "wire/bulk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum verdict { MISSING, NO, OK, ABSENT, VERDICTS };

struct finding {
    enum verdict verdict;
    char words[ERROR_TEXT_MAX];
};

static void find(struct finding *f, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void find(struct finding *f, enum verdict verdict, const char *format, ...)
{
    va_list args;
    f->verdict = verdict;
    va_start(args, format);
    vsnprintf(f->words, sizeof f->words, format, args);
    va_end(args);
}

// Reads the first line of a small file, without its newline. Returns false if that fails.
static bool first_line(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    bool got = f && fgets(out, (int)size, f);
    if (f)
        fclose(f);
    if (got)
        out[strcspn(out, "\n")] = 0;
    return got;
}

// ---------------------------------------------------------------- time

static void check_cycle_counter(const struct options *o, struct finding *f)
{
    (void)o;
    if (clock_ticks_usable())
        find(f, OK, "runs at one rate: points are stamped with it");
    else
        find(f, NO,
             "is not invariant here: points are stamped with clock_gettime, which costs more; "
             "nothing to do");
}

static void check_clock_source(const struct options *o, struct finding *f)
{
    (void)o;
    char source[64];
    if (!first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                    sizeof source))
        find(f, NO, "the kernel does not say which it uses; nothing to do");
    else if (strcmp(source, "tsc") == 0 || strcmp(source, "kvm-clock") == 0 ||
             strcmp(source, "arch_sys_counter") == 0)
        find(f, OK, "%s", source);
    else
        find(f, NO,
             "%s: reading the time is a slow call here; boot with clocksource=tsc where the "
             "processor allows it",
             source);
}

// ---------------------------------------------------------------- the kernel

static void check_memfd(const struct options *o, struct finding *f)
{
    (void)o;
    struct error e;
    if (shared_memory_check(&e) == 0)
        find(f, OK, "memfd_create with sealing");
    else
        find(f, MISSING, "%s", e.text);
}

static void check_pidfd(const struct options *o, struct finding *f)
{
    (void)o;
    enum { PIDFD_OPEN = 434 }; // the same on all architectures; older headers lack the name
    int fd = (int)syscall(PIDFD_OPEN, getpid(), 0);
    if (fd >= 0)
        find(f, OK, "pidfd_open");
    else
        find(f, NO,
             "pidfd_open: %s; the end of programs is noticed a little later (Linux 5.3 or newer "
             "has it)",
             strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void check_memory_lock(const struct options *o, struct finding *f)
{
    (void)o;
    enum { WANTED_BYTES = 1 << 20 };
    struct rlimit limit = {0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        find(f, OK, "unlimited");
    else if (limit.rlim_cur >= WANTED_BYTES)
        find(f, OK, "%llu KiB", (unsigned long long)limit.rlim_cur / 1024);
    else
        find(f, NO, "only %llu KiB may be locked: RDMA needs more; see ulimit -l and limits.conf",
             (unsigned long long)limit.rlim_cur / 1024);
}

static void check_proc(const struct options *o, struct finding *f)
{
    (void)o;
    char line[512];
    if (!first_line("/proc/stat", line, sizeof line) ||
        !first_line("/proc/meminfo", line, sizeof line)) {
        find(f, MISSING, "/proc cannot be read: there are no node metrics; mount it");
        return;
    }
    FILE *mounts = fopen("/proc/self/mounts", "re");
    bool hidden = false;
    while (mounts && fgets(line, sizeof line, mounts)) {
        if (strncmp(line, "proc /proc ", strlen("proc /proc ")) == 0)
            hidden = strstr(line, "hidepid=") && !strstr(line, "hidepid=0") &&
                     !strstr(line, "hidepid=off");
    }
    if (mounts)
        fclose(mounts);
    if (hidden)
        find(f, OK, "readable; other users' processes are hidden, which sonde does not need");
    else
        find(f, OK, "readable");
}

// ---------------------------------------------------------------- devices

// True if a display or 3D controller of this vendor is on the PCI bus.
static bool gpu_on_bus(const char *vendor)
{
    struct dirent **entries;
    int n = scandir("/sys/bus/pci/devices", &entries, NULL, NULL);
    bool found = false;
    for (int i = 0; i < n; i++) {
        char path[320], of[32], class[32];
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%.255s/vendor", entries[i]->d_name);
        bool same = !found && first_line(path, of, sizeof of) && strcmp(of, vendor) == 0;
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%.255s/class", entries[i]->d_name);
        found |= same && first_line(path, class, sizeof class) && strncmp(class, "0x03", 4) == 0;
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return found;
}

// Like the agent, starts the vendor's library, or reads /sys, and samples each GPU once. `variable`
// is the environment variable for the path of the library. If it is set, the library must exist.
static void check_gpus(struct finding *f, const char *source, const char *vendor,
                       const char *variable)
{
    struct collect_options options = {
        .root = "", .level = 3, .folder = "/tmp", .uid = getuid(), .sources = source};
    struct collect *c;
    struct error e;
    if (collect_create(&options, &c, &e) < 0) {
        find(f, NO, "%s", e.text);
        return;
    }
    struct str library = STR("");
    static double values[STORE_SET_SERIES_MAX];
    double count = 0;
    if (collect_set_count(c) > 0 && collect_sample(c, 0, clock_realtime_ns(), values) > 0) {
        struct collect_set set;
        collect_get_set(c, 0, &set);
        count = values[0]; // gpu_count is the first value
        for (size_t i = 0; i < set.series[0].label_count; i++)
            if (str_eq(set.series[0].labels[i].key, STR("library")))
                library = set.series[0].labels[i].value;
    }
    struct str reason = collect_reason(c, str_of(source));
    if (library.size)
        find(f, count > 0 ? OK : NO, "%g answer, asked through %.*s%s%.*s", count, STR_ARG(library),
             reason.size ? "; " : "", STR_ARG(reason));
    else
        find(f, gpu_on_bus(vendor) || getenv(variable) ? NO : ABSENT,
             "%.*s: no metrics of such GPUs", STR_ARG(reason));
    collect_destroy(c);
}

static void check_nvidia(const struct options *o, struct finding *f)
{
    (void)o;
    check_gpus(f, "gpu-nvidia", "0x10de", "SONDE_NVML");
}

static void check_amd(const struct options *o, struct finding *f)
{
    (void)o;
    check_gpus(f, "gpu-amd", "0x1002", "SONDE_ROCM_SMI");
}

static void check_intel(const struct options *o, struct finding *f)
{
    (void)o;
    check_gpus(f, "gpu-intel", "0x8086", "SONDE_LEVEL_ZERO");
}

// ---------------------------------------------------------------- the network

static void check_fabric(const struct options *o, struct finding *f)
{
    (void)o;
    char words[300];
    bool found = wire_fabric_describe(words, sizeof words);
    find(f, found ? OK : ABSENT, "%s", words);
}

// ---------------------------------------------------------------- port and folders

static void check_port(const struct options *o, struct finding *f)
{
    int port = options_int(o, OPT_PORT);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0)
        find(f, OK, "%d is free", port);
    else
        find(f, NO, "%d cannot be used (%s): the next free one is taken; --port chooses another",
             port, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static const char *file_system_name(long type)
{
    static const struct {
        long type;
        const char *name;
    } names[] = {{0xEF53, "ext4"},       {0x01021994, "tmpfs"}, {0x58465342, "xfs"},
                 {0x9123683E, "btrfs"},  {0x6969, "nfs"},       {0x794c7630, "overlayfs"},
                 {0x0BD00BD0, "lustre"}, {0x47504653, "gpfs"},  {0x65735546, "fuse"},
                 {0x2FC12FC1, "zfs"},    {0x517B, "smb"},       {0xFF534D42, "cifs"},
                 {0x19830326, "beegfs"}, {0x00C36400, "ceph"},  {0x858458f6, "ramfs"},
                 {0x01021997, "9p"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].type == type)
            return names[i].name;
    }
    return "unknown";
}

// Does what the store does with its file: allocates space, maps it shared, writes to it.
static int try_store_file(const char *folder, struct error *e)
{
    enum { TRIAL_BYTES = 64 * 1024 };
    char path[FOLDER_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/.doctor-XXXXXX", folder);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return error_set(e, -errno, "cannot write there: %s", strerror(errno));
    unlink(path);
    int code = posix_fallocate(fd, 0, TRIAL_BYTES);
    if (code != 0) {
        close(fd);
        return error_set(e, -code, "cannot set space aside (fallocate): %s", strerror(code));
    }
    char *map = mmap(NULL, TRIAL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    code = errno;
    close(fd);
    if (map == MAP_FAILED)
        return error_set(e, -code, "cannot map a shared file: %s", strerror(code));
    map[TRIAL_BYTES - 1] = 1;
    munmap(map, TRIAL_BYTES);
    return 0;
}

static void check_run_folder(const struct options *o, struct finding *f)
{
    enum { FREE_WANTED_MIB = 256 };
    struct error e;
    char base[FOLDER_PATH_MAX];
    bool made = false;
    int status = folder_base_path(options_text(o, OPT_RUN_DIR), base, &e);
    if (status == 0) {
        made = mkdir(base, 0700) == 0;
        status = folder_make_private(base, &e);
    }
    if (status < 0) {
        find(f, MISSING, "%s", e.text);
        return;
    }
    close(status);
    struct statfs kind;
    struct statvfs space;
    if (statfs(base, &kind) < 0 || statvfs(base, &space) < 0) {
        find(f, MISSING, "%s: %s", base, strerror(errno));
    } else if (try_store_file(base, &e) < 0) {
        find(f, MISSING, "%s (%s): %s; set TMPDIR or --run-dir to another folder", base,
             file_system_name((long)kind.f_type), e.text);
    } else {
        unsigned long long free_mib = (unsigned long long)space.f_bavail * space.f_frsize >> 20;
        find(f, free_mib < FREE_WANTED_MIB ? NO : OK, "%s: %s, %llu MiB free%s", base,
             file_system_name((long)kind.f_type), free_mib,
             free_mib < FREE_WANTED_MIB
                 ? ", which is little: set TMPDIR or --run-dir to another folder"
                 : "");
    }
    if (made)
        rmdir(base);
}

// Inside a job: checks that points of programs on this machine reach the job's agent.
static void check_job(const struct options *o, struct finding *f)
{
    (void)o;
    const char *path = getenv("SONDE_SOCKET"), *slash = path ? strrchr(path, '/') : NULL;
    char folder[FOLDER_SOCKET_MAX + 1];
    if (!slash || slash == path || strlen(path) > FOLDER_SOCKET_MAX) {
        find(f, OK, "this is not inside a job of sonde run");
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (access(folder, F_OK) != 0) {
        find(f, MISSING,
             "%s is not here, so nothing that programs emit is recorded: the job is over, or %s",
             folder, SEGMENT_FOLDER_HINT);
        return;
    }
    int fd = exchange_open(path);
    if (fd < 0)
        find(f, MISSING, "no agent answers at %s: %s", path, strerror(-fd));
    else
        find(f, OK, "its agent answers at %s", path);
    if (fd >= 0)
        close(fd);
}

static void check_runs_folder(const struct options *o, struct finding *f)
{
    struct error e;
    char path[FOLDER_PATH_MAX], part[FOLDER_PATH_MAX];
    if (runs_path(options_text(o, OPT_RUNS), path, &e) < 0) {
        find(f, MISSING, "%s", e.text);
        return;
    }
    // The first run makes a missing folder, so the nearest existing parent must be writable.
    memcpy(part, path, sizeof part);
    while (access(part, F_OK) < 0 && errno == ENOENT && strrchr(part, '/') > part)
        *strrchr(part, '/') = 0;
    if (folder_check_writable(part, &e) == 0)
        find(f, OK, "%s", path);
    else
        find(f, MISSING, "%s: %.300s; set SONDE_RUNS, or use --record DIR", path, e.text);
}

// ---------------------------------------------------------------- environment of this process

static void check_scheduler(const struct options *o, struct finding *f)
{
    (void)o;
    const char *slurm = getenv("SLURM_JOB_ID"), *pbs = getenv("PBS_JOBID");
    if (slurm)
        find(f, OK, "inside Slurm job %s", slurm);
    else if (pbs)
        find(f, OK, "inside PBS job %s", pbs);
    else
        find(f, OK, "no Slurm or PBS job around us: this machine alone");
}

// ---------------------------------------------------------------- tracing

static void check_trace(const struct options *o, struct finding *f)
{
    (void)o;
    struct buf found = {0}, lacks = {0};
    for (size_t i = 0; i < TRACERS; i++) {
        const struct tracer *tracer = &tracers[i];
        char path[PATH_MAX];
        if (trace_find(tracer, path))
            buf_printf(&found, "%s%s (%s)", found.size ? ", " : "", tracer->name, tracer->what);
        else
            buf_printf(&lacks, "%s%s needs %s", lacks.size ? ", " : "", tracer->name,
                       path[0] ? path : tracer->path);
    }
    find(f, lacks.size ? NO : OK, "%.*s%s%.*s", STR_ARG(buf_str(&found)),
         found.size && lacks.size ? "; " : "", STR_ARG(buf_str(&lacks)));
    buf_free(&found);
    buf_free(&lacks);
}

static const struct {
    const char *name;
    void (*check)(const struct options *o, struct finding *f);
} checks[] = {
    {"cycle counter", check_cycle_counter},
    {"clock source", check_clock_source},
    {"shared memory", check_memfd},
    {"process handles", check_pidfd},
    {"/proc", check_proc},
    {"memory locks", check_memory_lock},
    {"NVIDIA GPUs", check_nvidia},
    {"AMD GPUs", check_amd},
    {"Intel GPUs", check_intel},
    {"fabric", check_fabric},
    {"tracing", check_trace},
    {"HTTP port", check_port},
    {"run folder", check_run_folder},
    {"job", check_job},
    {"recordings", check_runs_folder},
    {"allocation", check_scheduler},
};

// The results, grouped by verdict.
struct report {
    struct buf parts[VERDICTS];
};

static void add_finding(struct report *r, const char *name, const struct finding *f)
{
    static const char *const words[] = {[MISSING] = "missing", [NO] = "no", [OK] = "ok"};
    static const char *const colours[] = {
        [MISSING] = COLOUR_RED, [NO] = COLOUR_YELLOW, [OK] = COLOUR_GREEN};
    bool coloured = colour_enabled(STDOUT_FILENO);
    struct buf *out = &r->parts[f->verdict];
    if (f->verdict == ABSENT) {
        buf_printf(out, "%s%s", out->size ? ", " : "", name);
        return;
    }
    buf_printf(out, "%s%-8s%s %-16s ", coloured ? colours[f->verdict] : "", words[f->verdict],
               coloured ? COLOUR_OFF : "", name);
    printable_add(out, str_of(f->words));
    buf_add_char(out, '\n');
}

// True if a source has no values for a reason that the user cannot change.
static bool is_absent(const char *reason)
{
    return !strstr(reason, strerror(EACCES)) && !strstr(reason, strerror(EPERM));
}

// Adds one line for all working sources of node metrics, and one for each blocked source. GPUs have
// checks of their own.
static void add_sources(struct report *r)
{
    static struct source_here sources[SOURCES_HERE_MAX];
    struct finding f = {0};
    struct error e;
    int count = sources_here(sources, &e), gives = 0;
    struct buf names = {0};
    if (count < 0) {
        find(&f, MISSING, "%s", e.text);
        add_finding(r, "node metrics", &f);
        return;
    }
    double share = 0;
    const struct source_here *dearest = sources;
    for (int i = 0; i < count; i++) {
        if (sources[i].gives)
            buf_printf(&names, "%s%.*s", gives++ ? ", " : "", STR_ARG(sources[i].name));
        share += sources[i].core_share;
        dearest = sources[i].core_share > dearest->core_share ? &sources[i] : dearest;
    }
    if (gives)
        buf_printf(&names, "; at their rates they take %.2g %% of a core, %.*s %.2g %% of it",
                   100 * share, STR_ARG(dearest->name), 100 * dearest->core_share);
    find(&f, gives ? OK : MISSING, "%s", gives ? buf_cstr(&names) : "no source gives anything");
    add_finding(r, "node metrics", &f);
    buf_free(&names);
    for (int i = 0; i < count; i++) {
        if ((sources[i].gives && !sources[i].missing[0]) ||
            str_starts(sources[i].name, STR("gpu-")))
            continue;
        char name[64];
        snprintf(name, sizeof name, "%.*s", STR_ARG(sources[i].name));
        find(&f, !sources[i].gives && is_absent(sources[i].missing) ? ABSENT : NO, "%s",
             sources[i].missing);
        add_finding(r, name, &f);
    }
}

int command_doctor(const struct options *o)
{
    struct report r = {0};
    struct buf out = {0};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        struct finding f = {0};
        checks[i].check(o, &f);
        add_finding(&r, checks[i].name, &f);
        if (checks[i].check == check_proc)
            add_sources(&r);
    }
    int code = r.parts[MISSING].size ? EXIT_FAILED : EXIT_OK;
    for (int verdict = MISSING; verdict <= OK; verdict++)
        buf_add_str(&out, buf_str(&r.parts[verdict]));
    if (r.parts[ABSENT].size)
        buf_printf(&out, "%-8s %-16s %s: not on this machine; sonde metrics says why\n", "absent",
                   "hardware", buf_cstr(&r.parts[ABSENT]));
    for (int verdict = MISSING; verdict < VERDICTS; verdict++)
        buf_free(&r.parts[verdict]);
    int printed = command_print(&out);
    return printed ? printed : code;
}
