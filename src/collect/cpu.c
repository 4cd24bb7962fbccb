// cpu.c - /proc/stat: processor time by mode, context switches, interrupts, forks.
//
//   cpu  3878 0 2005 293616 594 0 75 16 0 0   ticks: user nice system idle iowait irq softirq steal
//                                             guest guest_nice
//   cpu0 1462 0 692 …                         older kernels have fewer columns: those are missing
//   intr 206444 0 0 …                         the total stands first; the rest can be very long
//   ctxt 1234                                 lines come in any order, with others in between
//
// The busy share compares two readings. The kernel's idle and iowait can step back a little, so
// each column's step counts as at least 0. If the sum of all columns steps back, the counters were
// reset (a migrated virtual machine), and this sample has no share.
//
// The same is done for each processor: their maximum and standard deviation tell one busy thread
// from work that is spread evenly.
#include "base/array.h"
#include "collect/procfile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

// user time already includes guest time
enum { MODE_IDLE = 3, MODE_IOWAIT = 4, MODES_SUMMED = 8, MODES = 10 };

enum { CORES_MAX = 8192 };

// The columns from which a busy share is computed.
struct reading {
    uint64_t ticks[MODES_SUMMED];
    bool is_there;
};

struct core {
    struct reading last;
    ptrdiff_t instance; // at level 4; otherwise -1
};

struct cpu {
    struct procfile file;
    double ticks_per_second;
    struct reading last;
    struct core *cores; // by processor number
    size_t core_capacity;
};

// Statistics of the busy shares of all cores in one sample.
struct spread {
    size_t count;
    double sum, sum_of_squares, max;
};

static const enum metric_symbol mode_rows[MODES] = {
    METRIC_CPU_USER, METRIC_CPU_NICE,    METRIC_CPU_SYSTEM, METRIC_CPU_IDLE,  METRIC_CPU_IOWAIT,
    METRIC_CPU_IRQ,  METRIC_CPU_SOFTIRQ, METRIC_CPU_STEAL,  METRIC_CPU_GUEST, METRIC_CPU_GUEST_NICE,
};

static const struct {
    struct str name;
    enum metric_symbol row;
} single_lines[] = {
    {{"ctxt ", 5}, METRIC_CPU_CONTEXT_SWITCHES},  {{"intr ", 5}, METRIC_CPU_INTERRUPTS},
    {{"processes ", 10}, METRIC_CPU_FORKS},       {{"procs_running ", 14}, METRIC_CPU_RUNNING},
    {{"procs_blocked ", 14}, METRIC_CPU_BLOCKED},
};

static bool busy_percent(struct reading *last, const uint64_t now[MODES], double *out)
{
    uint64_t total = 0, idle = 0, sum_now = 0, sum_last = 0;
    for (int i = 0; i < MODES_SUMMED; i++) {
        uint64_t step = now[i] > last->ticks[i] ? now[i] - last->ticks[i] : 0;
        sum_now += now[i];
        sum_last += last->ticks[i];
        total += step;
        if (i == MODE_IDLE || i == MODE_IOWAIT)
            idle += step;
    }
    bool usable = last->is_there && sum_now >= sum_last && total > 0;
    memcpy(last->ticks, now, sizeof last->ticks);
    last->is_there = true;
    if (usable)
        *out = 100 * (double)(total - idle) / (double)total;
    return usable;
}

// Finds the entry of processor `number`; grows the array when a processor comes, which is rare.
static struct core *find_core(struct cpu *cpu, uint64_t number)
{
    if (number >= CORES_MAX)
        return NULL;
    size_t before = cpu->core_capacity;
    if (!array_room(&cpu->cores, &cpu->core_capacity, number + 1, sizeof *cpu->cores))
        return NULL;
    for (size_t i = before; i < cpu->core_capacity; i++)
        cpu->cores[i] = (struct core){.instance = -1};
    return &cpu->cores[number];
}

// Reads "17 1462 0 692 …", the text after "cpu". Returns whether it is a processor.
static bool sample_core(struct source *s, double *values, struct str line, struct spread *spread)
{
    struct cpu *cpu = s->state;
    uint64_t number, now[MODES] = {0};
    struct str columns = line;
    if (!scan_u64(&columns, &number))
        return false;
    struct str name = str_slice(line, 0, (size_t)(columns.data - line.data));
    int mode = 0;
    while (mode < MODES_SUMMED && scan_u64(&columns, &now[mode]))
        mode++;
    struct core *core = find_core(cpu, number);
    double percent;
    if (!core || mode <= MODE_IDLE)
        return true;
    if (core->instance < 0 && s->tagged_rows)
        core->instance = source_instance(s, name, STR(""));
    if (!busy_percent(&core->last, now, &percent))
        return true;
    spread->count++;
    spread->sum += percent;
    spread->sum_of_squares += percent * percent;
    if (percent > spread->max)
        spread->max = percent;
    if (core->instance >= 0)
        source_put_at(s, values, core->instance, METRIC_CPU_CORE_PERCENT, percent);
    return true;
}

static void put_spread(struct source *s, double *values, const struct spread *spread)
{
    if (spread->count == 0)
        return;
    double mean = spread->sum / (double)spread->count;
    double variance = spread->sum_of_squares / (double)spread->count - mean * mean;
    source_put(s, values, METRIC_CPU_CORE_MAX, spread->max);
    source_put(s, values, METRIC_CPU_CORE_DEVIATION, variance > 0 ? sqrt(variance) : 0);
}

static int cpu_sample(struct source *s, double *values)
{
    struct cpu *cpu = s->state;
    struct str rest, line;
    int failed = procfile_read(&cpu->file, s, &rest);
    if (failed)
        return failed;
    size_t found = 0, processors = 0;
    struct spread spread = {0};
    while (scan_line(&rest, &line)) {
        uint64_t number;
        if (str_starts(line, STR("cpu "))) {
            uint64_t now[MODES] = {0};
            struct str columns = str_slice(line, 4, line.size);
            int mode = 0;
            while (mode < MODES && scan_u64(&columns, &now[mode])) {
                source_put(s, values, mode_rows[mode], (double)now[mode] / cpu->ticks_per_second);
                mode++;
            }
            double percent;
            // Without an idle column no share can be computed.
            if (mode > MODE_IDLE && busy_percent(&cpu->last, now, &percent))
                source_put(s, values, METRIC_CPU_PERCENT, percent);
            found += (size_t)mode;
            continue;
        }
        if (str_starts(line, STR("cpu"))) {
            processors += sample_core(s, values, str_slice(line, 3, line.size), &spread);
            continue;
        }
        for (size_t i = 0; i < sizeof single_lines / sizeof *single_lines; i++) {
            if (!str_starts(line, single_lines[i].name))
                continue;
            struct str value = str_slice(line, single_lines[i].name.size, line.size);
            if (scan_u64(&value, &number)) {
                source_put(s, values, single_lines[i].row, (double)number);
                found++;
            }
            break;
        }
    }
    put_spread(s, values, &spread);
    if (processors) {
        source_put(s, values, METRIC_CPU_COUNT, (double)processors);
        found++;
    }
    return found ? 0 : source_fail(s, -EBADMSG, "/proc/stat does not hold processor times");
}

static int cpu_open(struct source *s)
{
    struct cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return source_fail(s, -ENOMEM, "no memory");
    long ticks = sysconf(_SC_CLK_TCK);
    cpu->ticks_per_second = ticks > 0 ? (double)ticks : 100;
    int failed = procfile_open(&cpu->file, s, "/proc/stat");
    if (failed) {
        free(cpu);
        return failed;
    }
    s->state = cpu;
    // The first sample's share is counted from now.
    double unused[METRIC_COUNT];
    cpu_sample(s, unused);
    return 0;
}

static void cpu_close(struct source *s)
{
    struct cpu *cpu = s->state;
    procfile_close(&cpu->file);
    free(cpu->cores);
    free(cpu);
}

const struct source_kind source_cpu = {
    .name = {"cpu", 3},
    .open = cpu_open,
    .sample = cpu_sample,
    .close = cpu_close,
    .keys = {"cpu"},
    .tagged_from = METRIC_CPU_CORE_PERCENT,
    .tagged_to = METRIC_CPU_CORE_PERCENT,
};
