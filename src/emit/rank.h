// rank.h - finds the rank of this process in a job that several launchers may have started.
// Internal to src/emit.
#ifndef SONDE_EMIT_RANK_H
#define SONDE_EMIT_RANK_H

// The rank as its launcher wrote it (getenv's text), or NULL if no launcher of the table
// (rank_sources.def) gives one.
const char *emit_rank(void);

#endif
