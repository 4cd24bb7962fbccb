// rank.h - which rank this process has, in a job that may have been started by several launchers.
// Internal to src/emit.
#ifndef SONDE_EMIT_RANK_H
#define SONDE_EMIT_RANK_H

// The rank as its launcher wrote it (getenv's text), or NULL where no launcher of the table
// (rank_sources.def) gives one.
const char *emit_rank(void);

#endif
