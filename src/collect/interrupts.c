// interrupts.c - /proc/interrupts: the count of each interrupt, over all processors; at level 4.
//
//              CPU0       CPU1
//    24:          1          0  IO-APIC   5-edge      ACPI:Ged
//   LOC:    1020304    2030405   Local timer interrupts
//   ERR:          0
//
// On large nodes the file has hundreds of lines of hundreds of numbers, so it is read only every
// RATE_S seconds. Interrupts that have never occurred are left out.
#include "collect/procfile.h"

#include <errno.h>
#include <stdlib.h>

enum { RATE_S = 5 }; // seconds between samples

static int interrupts_sample(struct source *s, double *values)
{
    struct str text, line;
    int failed = procfile_read(s->state, s, &text);
    if (failed)
        return failed;
    size_t processors = 0, lines = 0;
    if (scan_line(&text, &line))
        while (str_word(&line).size)
            processors++;
    while (scan_line(&text, &line)) {
        struct str name = str_trim(str_cut(&line, ':'));
        if (!line.data || name.size == 0)
            continue;
        uint64_t sum = 0, number;
        size_t count = 0;
        for (; count < processors && scan_u64(&line, &number); count++)
            sum += number;
        ptrdiff_t instance =
            count && sum ? source_instance(s, name, STR("")) : source_find(s, name, STR(""));
        lines++;
        if (instance >= 0 && count)
            source_put_at(s, values, instance, METRIC_INTERRUPT_COUNT, (double)sum);
    }
    if (lines == 0)
        return source_fail(s, -EBADMSG, "/proc/interrupts does not hold counts");
    source_put(s, values, METRIC_INTERRUPT_LINES, (double)lines);
    source_forget_unseen(s);
    return 0;
}

static void interrupts_close(struct source *s)
{
    procfile_close(s->state);
    free(s->state);
}

static int interrupts_open(struct source *s)
{
    struct procfile *file = malloc(sizeof *file);
    if (!file)
        return source_fail(s, -ENOMEM, "no memory");
    int failed = procfile_open(file, s, "/proc/interrupts");
    if (failed) {
        free(file);
        return failed;
    }
    s->state = file;
    double unused[METRIC_COUNT];
    interrupts_sample(s, unused);
    return 0;
}

const struct source_kind source_interrupts = {
    .name = {"interrupts", 10},
    .rate_s = RATE_S,
    .open = interrupts_open,
    .sample = interrupts_sample,
    .close = interrupts_close,
    .keys = {"interrupt"},
    .tagged_from = METRIC_INTERRUPT_COUNT,
    .tagged_to = METRIC_INTERRUPT_COUNT,
};
