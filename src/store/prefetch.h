// prefetch.h - requests blocks from the disk before page faults do.
//
// A page fault reads what lies around the page: 128 KiB on most machines, 8 MiB on some. So a query
// of a few blocks would wait several times for each block, or for the disk to read the whole file.
// A request reads just the blocks. Blocks that follow each other are a run. The first run_max bytes
// of a run are requested, in pieces that double; the rest is left to page faults, whose read-ahead
// costs the processor less than requests.
#ifndef SONDE_STORE_PREFETCH_H
#define SONDE_STORE_PREFETCH_H

#include <stdint.h>

// The last run. Zero-initialised: none. Threads may use it at the same time; then some bytes may be
// requested twice, or not at all.
struct prefetch {
    _Atomic uint64_t from, to;
};

// Called before `size` bytes from `offset` on are read.
void prefetch_bytes(struct prefetch *p, int fd, uint64_t offset, uint64_t size);

#endif
