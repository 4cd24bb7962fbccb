// rank.h - finds the rank of this process in a job. Several launchers may have started the job.
// Internal to src/emit.
#ifndef SONDE_EMIT_RANK_H
#define SONDE_EMIT_RANK_H

// Returns the rank as its launcher wrote it (a text of getenv), or NULL if no launcher in the table
// (rank_sources.def) has given one.
const char *emit_rank(void);

#endif
