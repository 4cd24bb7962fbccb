// accounts.c - records which part of each program's counter cells the totals include. These
// accounts survive a killed agent.
//
// An agent that takes over knows the total of a series from the recording, and reads the cell of
// each living program. The total also includes the additions of ended programs. The accounts
// (struct segment_account) hold the part that living programs have added:
//
//     additions of ended programs = total − Σ accounts of the living programs
//
// So a total is exact after any number of agents, whatever the programs add meanwhile. The same
// rule applies to a program that was released and connects again: its account is subtracted from
// the additions of ended programs.
//
// A sample writes the accounts of all programs, then marks the accounts of each program as
// complete, then records the totals. An account includes the total, so the agent may be killed
// before or after it records the totals. Accounts of an incomplete sample do not count; the
// accounts of the previous sample do.
//
// Totals never decrease, so of two totals the greater one is the later one.
#include "ingest/ingest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>

static struct segment_account *account_of(const struct program *p, uint32_t definition)
{
    char *at = (char *)p->agent + SEGMENT_AGENT_RESERVED;
    return (struct segment_account *)(void *)at + definition;
}

static double number_of(const _Atomic uint64_t *word)
{
    uint64_t bits = atomic_load_explicit(word, memory_order_relaxed);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void set_number(_Atomic uint64_t *word, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    atomic_store_explicit(word, bits, memory_order_relaxed);
}

uint64_t accounts_stamp(struct ingest *in)
{
    uint64_t now = (uint64_t)clock_read_ns(CLOCK_BOOTTIME);
    return in->stamp = now > in->stamp ? now : in->stamp + 1;
}

void accounts_resume(struct ingest *in, struct program *p)
{
    struct segment_agent *agent = p->agent;
    p->accounts_since = atomic_load_explicit(&agent->since, memory_order_relaxed);
    p->accounts_complete = atomic_load_explicit(&agent->complete, memory_order_relaxed);
    // Acquire: if the number is that of our recording, `since` has been written, too.
    if (atomic_load_explicit(&agent->recording, memory_order_acquire) != in->recording) {
        p->accounts_since = accounts_stamp(in);
        p->accounts_complete = 0;
        atomic_store_explicit(&agent->since, p->accounts_since, memory_order_relaxed);
        // Release: an agent that reads our number also reads `since`.
        atomic_store_explicit(&agent->recording, in->recording, memory_order_release);
    }
    // After our first sample, we know which samples are complete. Our own stamps must not confirm
    // samples of other agents.
    if (in->epoch == 0 && p->accounts_complete > in->complete && p->accounts_complete < in->began)
        in->complete = p->accounts_complete;
}

// Reserves the page of an account before the first access, which would otherwise raise SIGBUS.
static bool reserve(struct program *p, uint32_t definition)
{
    struct cells *c = &p->cells;
    size_t needed_bytes = (definition + 1) * sizeof(struct segment_account);
    if (needed_bytes <= c->accounts_reserved)
        return true;
    needed_bytes = (needed_bytes + SEGMENT_PAGE - 1) & ~(size_t)(SEGMENT_PAGE - 1);
    off_t from = SEGMENT_AGENT_RESERVED + (off_t)c->accounts_reserved;
    int failed;
    do
        failed = fallocate(p->lock_fd, FALLOC_FL_KEEP_SIZE, from,
                           (off_t)(needed_bytes - c->accounts_reserved))
                     ? errno
                     : 0;
    while (failed == EINTR);
    if (failed && failed != EOPNOTSUPP && failed != ENOSYS && failed != EPERM)
        return false;
    c->accounts_reserved = needed_bytes;
    return true;
}

bool accounts_join(const struct ingest *in, struct program *p, uint32_t definition,
                   struct accumulator *a, double *value)
{
    if (!reserve(p, definition))
        return false;
    struct segment_account *account = account_of(p, definition);
    uint64_t complete = in->complete > p->accounts_complete ? in->complete : p->accounts_complete;
    // a program can write any number into its memory
    complete = complete < in->stamp ? complete : in->stamp;
    uint64_t since = a->goes_on || in->began < p->accounts_since ? p->accounts_since : in->began;
    uint64_t stamps[2];
    for (unsigned i = 0; i < 2; i++) {
        // Acquire: value and total were written before the stamp, and are read after it.
        stamps[i] = atomic_load_explicit(&account->of[i].stamp, memory_order_acquire);
        if (stamps[i] && (stamps[i] < since || stamps[i] > complete ||
                          !isfinite(number_of(&account->of[i].value)) ||
                          !isfinite(number_of(&account->of[i].total)))) {
            stamps[i] = 0;
            // Clears this entry, because it is written next. Release: the checks above have read
            // its numbers before.
            atomic_store_explicit(&account->of[i].stamp, 0, memory_order_release);
        }
    }
    unsigned newest = stamps[1] > stamps[0];
    if (!stamps[newest])
        return false;
    // The total of another agent may be ahead of the recording. Our own total is not, because we
    // know every program that has added to it.
    double total = number_of(&account->of[newest].total);
    double base = stamps[newest] < in->began && total > a->base ? total : a->base;
    *value = number_of(&account->of[newest].value);
    double gone = a->gone + (base - a->base) - *value;
    if (!isfinite(gone))
        return false;
    a->base = base;
    a->gone = gone;
    return true;
}

void accounts_write(struct program *p, uint32_t definition, uint64_t stamp, double value,
                    double total)
{
    if (!reserve(p, definition))
        return;
    struct segment_account *account = account_of(p, definition);
    uint64_t first = atomic_load_explicit(&account->of[0].stamp, memory_order_relaxed),
             second = atomic_load_explicit(&account->of[1].stamp, memory_order_relaxed);
    unsigned older = first > second;
    // An account with the same contents is already valid.
    if ((first || second) && number_of(&account->of[!older].value) == value &&
        number_of(&account->of[!older].total) == total)
        return;
    atomic_store_explicit(&account->of[older].stamp, 0, memory_order_relaxed);
    // Release: other agents see the stamp 0 before the new numbers, so no agent reads the new
    // numbers with the old stamp.
    atomic_thread_fence(memory_order_release);
    set_number(&account->of[older].value, value);
    set_number(&account->of[older].total, total);
    // Release: an agent that reads the new stamp also reads both numbers.
    atomic_store_explicit(&account->of[older].stamp, stamp, memory_order_release);
}

void accounts_complete(struct program *p, uint64_t stamp)
{
    // Release: an agent that reads this stamp also reads the accounts of all programs.
    atomic_store_explicit(&p->agent->complete, stamp, memory_order_release);
}
