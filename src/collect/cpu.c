// cpu.c - /proc/stat: processor time by mode, context switches, interrupts, forks.
//
//   cpu  3878 0 2005 293616 594 0 75 16 0 0     time in ticks: user nice system idle iowait irq softirq steal guest guest_nice
//   cpu0 1462 0 692 …                            older kernels have fewer columns: those are missing
//   intr 206444 0 0 …                            the total stands first; the rest can be very long
//   ctxt 1234                                    lines come in any order, with others in between
//
// The busy share compares two readings. The kernel's idle and iowait can step back a little, so each column's step is taken as at least 0;
// when the sum of all steps back the counters were reset (a migrated virtual machine), and there is no share this time.
#include "collect/procfile.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { MODE_IDLE = 3, MODE_IOWAIT = 4, MODES_SUMMED = 8, MODES = 10 }; // guest time is in user's already

struct cpu {
    struct procfile file;
    double ticks_per_second;
    uint64_t last[MODES]; // what the share is counted from
    bool have_last;
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

static bool busy_percent(struct cpu *cpu, const uint64_t now[MODES], double *out)
{
    uint64_t total = 0, idle = 0, sum_now = 0, sum_last = 0;
    for (int i = 0; i < MODES_SUMMED; i++) {
        uint64_t step = now[i] > cpu->last[i] ? now[i] - cpu->last[i] : 0;
        sum_now += now[i];
        sum_last += cpu->last[i];
        total += step;
        if (i == MODE_IDLE || i == MODE_IOWAIT)
            idle += step;
    }
    bool usable = cpu->have_last && sum_now >= sum_last && total > 0;
    memcpy(cpu->last, now, sizeof cpu->last);
    cpu->have_last = true;
    if (usable)
        *out = 100 * (double)(total - idle) / (double)total;
    return usable;
}

static int cpu_sample(struct source *s, double *values)
{
    struct cpu *cpu = s->state;
    struct str rest, line;
    int failed = procfile_read(&cpu->file, s, &rest);
    if (failed)
        return failed;
    size_t found = 0, processors = 0;
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
            // Without an idle column there is no share.
            if (mode > MODE_IDLE && busy_percent(cpu, now, &percent))
                source_put(s, values, METRIC_CPU_PERCENT, percent);
            found += (size_t)mode;
            continue;
        }
        if (str_starts(line, STR("cpu"))) {
            struct str index = str_slice(line, 3, line.size);
            processors += scan_u64(&index, &number);
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
    free(cpu);
}

const struct source_kind source_cpu = {{"cpu", 3}, cpu_open, cpu_sample, cpu_close};
