// undelivered.c - detects whether an agent reads this process's data, and counts the data that wait
// without an agent.
//
// A process has an agent if an agent has attached the segment (segment_agent.attached) since the
// process began to use it. It also has one while our connection is open, because the HELLO may
// still be in the agent's queue. Without an agent, unread records of the rings count as dropped
// until an agent finds this process. So do cells that no agent has ever read.
#include "emit/ring.h"

#include "sonde.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool has_agent(struct emit_process *p)
{
    return atomic_load_explicit(&p->agent->attached, memory_order_relaxed) != p->attached_before ||
           emit_is_connected(p);
}

// Returns the number of points, spans and notes of a ring that no agent has read.
static uint64_t count_records(const struct emit_process *p, struct ring *r)
{
    uint64_t size = p->ring_bytes, count = 0,
             at = atomic_load_explicit(&p->agent->tails[r->index].bytes, memory_order_relaxed);
    // Acquire: the records before head are complete. The ring's thread may write more records, but
    // never over unread ones.
    uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    while (head - at <= size && at != head) {
        uint64_t word = *emit_data(r, at), words = word >> 16 & 0xffff;
        unsigned type = word & 0xff;
        if (words == 0)
            break;
        count += type == SEGMENT_PAD ? 0 : type == SEGMENT_ROW ? words - 2 : 1;
        at += 8 * words;
    }
    return count;
}

static uint64_t count_cells(const struct emit_process *p, uint32_t slots)
{
    const _Atomic uint64_t *gauges =
        (const _Atomic uint64_t *)(const void *)(p->base + p->at.gauges);
    const _Atomic uint64_t *common =
        (const _Atomic uint64_t *)(const void *)(p->base + p->at.common);
    // Acquire, here and below: the memory of the cells before this end is reserved.
    uint32_t common_end = atomic_load_explicit(&p->header->common_end, memory_order_acquire);
    uint64_t count = 0;
    for (uint32_t i = 1; i < p->definitions; i++) {
        bool used = gauges[i] || (i < common_end && common[i]);
        for (uint32_t s = 0; !used && s < slots; s++) {
            const char *slot = p->base + p->at.slots + p->at.slot_bytes * s;
            uint32_t end = atomic_load_explicit(
                &((const struct ring *)(const void *)slot)->cells_end, memory_order_acquire);
            used = i < end && ((const _Atomic uint64_t *)(const void *)(slot + SLOT_CELLS))[i];
        }
        count += used;
    }
    return count;
}

uint64_t emit_undelivered_values(struct emit_process *p)
{
    emit_lock(p);
    uint64_t count = 0;
    if (!has_agent(p)) {
        // Acquire: these rings have been laid out.
        uint32_t slots = atomic_load_explicit(&p->header->slots_used, memory_order_acquire);
        for (uint32_t i = 0; i < slots; i++)
            count += count_records(
                p, (struct ring *)(void *)(p->base + p->at.slots + p->at.slot_bytes * i));
        if (p->attached_before == 0)
            count += count_cells(p, slots);
    }
    emit_unlock(p);
    return count;
}

// Finds the folder of the job. Returns true if the folder is visible here.
static bool folder_is_here(const char *socket_path, char folder[SEGMENT_PATH_MAX])
{
    memcpy(folder, socket_path, SEGMENT_PATH_MAX);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return true;
    *slash = 0;
    return access(folder, F_OK) == 0;
}

int sonde_check(char *why, size_t size)
{
    struct emit_process *p = &emit_process;
    char folder[SEGMENT_PATH_MAX];
    snprintf(why, size, "%s", "");
    // Acquire: a thread that reads EMIT_ON also reads the segment that start() laid out.
    if (atomic_load_explicit(&p->state, memory_order_acquire) != EMIT_ON || !emit_on())
        return 0;
    emit_lock(p);
    int failed = has_agent(p) ? 0 : emit_connect(p, false);
    if (failed == ENOENT && !folder_is_here(p->socket_path, folder))
        snprintf(why, size,
                 "nothing is recorded: the folder %s of the job is not here. In a container, bind "
                 "it (apptainer: "
                 "--bind %s; docker, podman: -v %s:%s); where TMPDIR is private, give sonde run a "
                 "--run-dir that both see",
                 folder, folder, folder, folder);
    else if (failed == EPERM)
        snprintf(why, size, "nothing is recorded: another user listens at %s; start the job again",
                 p->socket_path);
    else if (failed)
        snprintf(why, size, "nothing is recorded until an agent listens at %s (%s)", p->socket_path,
                 strerror(failed));
    emit_unlock(p);
    return -failed;
}
