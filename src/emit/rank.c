// rank.c - finds the rank that the innermost launcher has given this process.
//
// A process inherits the variables of all launchers above it, and these may contradict each other.
// Under `srun torchrun`, each worker of a node has its node's SLURM_PROCID. If a worker starts
// `srun`, all tasks inherit its RANK. The right variable is the one that was set last, by the
// launcher nearest to this process. The environments of the ancestors (/proc/PID/environ) show
// which one that is: the nearest ancestor without the variable, or with another value, is its
// launcher.
//
//   process        RANK  SLURM_PROCID    set
//   worker (we)     5        1
//   torchrun        -        1           RANK, at distance 1: it wins
//   slurmstepd      -        -           SLURM_PROCID, at distance 2
//
// srun passes its environment to its tasks through a daemon whose own environment has none of these
// variables. So all variables seem to be set there. SLURM_TASK_PID is the process that Slurm has
// started: if variables tie there, Slurm is the innermost launcher. The order of the table decides
// other ties.
#include "emit/rank.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DIGITS_MAX = 20,
    DISTANCE_MAX = 64, // ancestors to check
    ENTRY_MAX = 64,    // bytes of NAME=VALUE that are kept; our variables are shorter
    PIECE_BYTES = 512, // of one read from an environment; a thread may have little stack
};

enum guard { RANK_PAIR, RANK_STEP, RANK_ALONE };

static const struct source {
    const char *rank, *size;
    enum guard guard;
} sources[] = {
#define RANK_SOURCE(rank, size, guard, launchers) {rank, size, guard},
#include "emit/rank_sources.def"
#undef RANK_SOURCE
};

enum { SOURCES = sizeof sources / sizeof *sources };

struct candidate {
    const char *value; // NULL: this source gives no rank
    // distance of the process that set the variable; DISTANCE_UNKNOWN until it is found
    unsigned distance;
    bool present; // the last environment that was read has the variable
};

enum { DISTANCE_UNKNOWN = DISTANCE_MAX + 1 };

static bool number_of(const char *name, uint64_t *out, const char **text)
{
    *text = secure_getenv(name);
    return *text && strlen(*text) <= DIGITS_MAX && str_to_u64(str_of(*text), out);
}

static const char *value_of(const struct source *s)
{
    // The highest step numbers are not steps. Slurm gives them to a batch script, an interactive
    // shell and a prolog.
    enum { SLURM_SPECIAL_STEPS = 16 };
    uint64_t rank, other;
    const char *text, *unused;
    if (!number_of(s->rank, &rank, &text))
        return NULL;
    if (s->guard == RANK_PAIR && (!number_of(s->size, &other, &unused) || rank >= other))
        return NULL;
    if (s->guard == RANK_STEP &&
        (!number_of("SLURM_STEP_ID", &other, &unused) || other > UINT32_MAX - SLURM_SPECIAL_STEPS))
        return NULL;
    return text;
}

static void take_entry(struct str entry, struct candidate all[SOURCES])
{
    struct str value = entry, name = str_cut(&value, '=');
    for (size_t i = 0; i < SOURCES; i++)
        if (all[i].value && str_eq(name, str_of(sources[i].rank)) &&
            str_eq(value, str_of(all[i].value)))
            all[i].present = true;
}

// Finds the variables in the process's initial environment. Returns false if it is not readable.
static bool read_environment(long pid, struct candidate all[SOURCES])
{
    char path[40], piece[PIECE_BYTES], entry[ENTRY_MAX];
    size_t size = 0;
    for (size_t i = 0; i < SOURCES; i++)
        all[i].present = false;
    snprintf(path, sizeof path, "/proc/%ld/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = -1;
    while (fd >= 0 && ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR)))
        for (ssize_t i = 0; i < n; i++) {
            if (piece[i] == 0 && size < sizeof entry)
                take_entry((struct str){entry, size}, all);
            else if (piece[i] && size < sizeof entry)
                entry[size] = piece[i];
            size = piece[i] ? size + 1 : 0;
        }
    if (fd >= 0)
        close(fd);
    return n == 0;
}

static long parent_of(long pid)
{
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    // the process's name may contain anything, such as ") S PPID"
    const char *behind = strrchr(text, ')');
    char state;
    long parent = 0;
    return behind && sscanf(behind + 1, " %c %ld", &state, &parent) == 2 ? parent : 0;
}

static void find_distances(struct candidate all[SOURCES], unsigned *task_distance)
{
    uint64_t task = 0;
    const char *unused;
    number_of("SLURM_TASK_PID", &task, &unused);
    size_t left = SOURCES;
    long pid = getpid();
    for (unsigned distance = 0; left > 0 && distance <= DISTANCE_MAX; distance++) {
        bool readable = pid > 0 && read_environment(pid, all);
        left = 0;
        for (size_t i = 0; i < SOURCES; i++) {
            if (!readable || distance == DISTANCE_MAX)
                all[i].present = false;
            if (!all[i].present && all[i].distance == DISTANCE_UNKNOWN)
                all[i].distance = distance;
            left += all[i].value && all[i].distance == DISTANCE_UNKNOWN;
        }
        if (task && (uint64_t)pid == task)
            *task_distance = distance + 1;
        if (!readable)
            break;
        pid = parent_of(pid);
    }
}

const char *emit_rank(void)
{
    struct candidate all[SOURCES];
    const char *first = NULL;
    bool agree = true;
    for (size_t i = 0; i < SOURCES; i++) {
        all[i] = (struct candidate){.value = value_of(&sources[i]), .distance = DISTANCE_UNKNOWN};
        agree = agree && (!all[i].value || !first || strcmp(all[i].value, first) == 0);
        first = first ? first : all[i].value;
    }
    if (agree)
        return first;
    unsigned task_distance = DISTANCE_UNKNOWN;
    find_distances(all, &task_distance);
    const struct candidate *best = NULL;
    for (size_t i = 0; i < SOURCES; i++) {
        if (!all[i].value)
            continue;
        bool task = sources[i].guard == RANK_STEP && all[i].distance == task_distance;
        if (!best || all[i].distance < best->distance ||
            (task && all[i].distance == best->distance))
            best = &all[i];
    }
    return best->value;
}
