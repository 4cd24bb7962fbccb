// ingest_internal.h - declarations that the files of src/ingest share.
#ifndef SONDE_INGEST_INGEST_INTERNAL_H
#define SONDE_INGEST_INGEST_INTERNAL_H

#include "emit/segment.h"
#include "ingest/conversion.h"
#include "ingest/ingest.h"
#include "ingest/open_spans.h"

enum {
    INGEST_PROGRAMS_MAX_DEFAULT = 4096,
    INGEST_BATCH_POINTS = 4096,
    INGEST_CELL_CHUNK = 256, // number of series in a set of cells
    INGEST_ENDED_EARLY_MAX = 1024,
    INGEST_NOBODY = UINT32_MAX,
};
// a process may have started this much earlier than its start in clock ticks says
#define INGEST_START_SLACK_NS NS_PER_S

enum definition_state {
    DEFINITION_OFF,   // above the level: its values are ignored and not counted as lost
    DEFINITION_LIMIT, // refused by the store: its values are counted as dropped_limit
    DEFINITION_METRIC,
    DEFINITION_GROUP,
    DEFINITION_PROCESS, // the tags of the process, always number 0
};

struct group {
    uint32_t set;
    uint32_t members; // number of values in a record
    uint32_t columns; // number of values in a row of the set: the enabled members, each series once
    uint32_t from[];  // the member of each column
};

struct definition {
    uint8_t state, kind;
    bool has_cell;   // the program has used its cell
    bool has_sum;    // the program has added to its cell
    uint32_t series; // only of a metric
    struct group *group;
};

// The used cells of one program, in the order in which the agent found them. Each chunk of cells is
// a set of the store. Only the last chunk grows, so few sets are ever made.
struct cells {
    uint32_t *definitions; // the definition of each cell
    double *values;        // each cell's value when it was last read
    size_t count, capacity;
    uint32_t *sets;        // each chunk's set
    uint32_t *set_columns; // number of columns in each set; 0 = the set has not been made yet
    size_t chunks;
    double *sums; // scratch memory, one for each definition
    size_t sums_capacity;
    size_t accounts_reserved; // bytes of the agent's area that have memory
    bool unrecorded;          // a value has changed since the last sample
};

struct program {
    uint32_t id; // unique in this ingest; an id is never used twice
    pid_t pid;
    uint64_t start_ticks; // start of the process; 0 = not visible
    int pidfd;            // -1 = the process is gone, or none was available
    bool gone;            // the process has ended: the next drain is the last
    // its process sends a query: the next ingest_sample_requested records its cells
    bool cells_requested;
    bool warned;       // the log has said that its data are malformed
    bool warned_ahead; // the log has said that its times are ahead
    dev_t device;
    ino_t inode, agent_inode;
    uint64_t salt;    // makes the span ids of programs differ
    int64_t start_ns; // boot time; all records are later
    uint32_t clock, slots;
    uint64_t ring_bytes;
    struct segment_layout at;
    const char *base; // the whole segment, read-only
    struct segment_agent *agent;
    // the agent's area, opened again; the agent that holds its lock reads the segment. -1 = it
    // could not be opened
    int lock_fd;
    bool owned; // we hold the lock, and the members below continue from the previous agent's values
    uint32_t moves; // header.moves when the program connected to us

    uint64_t *heads; // the heads of this round, one for each slot
    uint32_t used;   // number of slots that had a ring in this round
    // our own tails; the segment has copies for the program and the next agent
    uint64_t *tails;
    uint64_t *dropped;      // each slot's count of drops when it was last read
    int64_t *newest;        // each slot's last point or row, by the program's clock
    uint64_t lost, refused; // header.dropped and header.refused when they were last read
    // which of the two counts in the segment was written last, by slot
    uint8_t *commits;
    struct conversion conversion; // conversion of this drain; at first that of the previous agent
    // it needs a turn, because another program defines one of its series (conversion.h)
    bool shares;
    uint32_t turn;
    uint64_t sharing_seen; // in->sharing at the last check
    // the previous agent was killed during a drain: its claimed records are taken with its
    // conversion
    bool interrupted;
    bool taken_over; // `conversion` and `newest` are still the previous agent's
    uint64_t accounts_since,
        // stamps of the valid accounts (segment.h), as left by another agent
        accounts_complete;

    size_t definitions_at; // bytes of definitions that have been read
    bool definitions_bad;  // a definition was invalid, so no more are read
    struct definition *definitions;
    size_t definition_count, definition_capacity;
    struct store_label tags[SEGMENT_TAGS_MAX]; // tags of the process
    size_t tag_count;
    char *tag_text;

    struct cells cells;
    struct open_spans open_spans;
    // Numbers of spans whose end this drain has read before their begin: another thread closed the
    // span, and its ring has a lower slot.
    uint64_t *ended_early;
    size_t ended_early_count, ended_early_capacity;
};

// The total of a series with cells. It never decreases when programs begin and end.
struct accumulator {
    double gone;    // counters: the sum that ended programs have added
    double base;    // the total from which `gone` continues
    bool begun;     // `gone` and `base` are set
    bool goes_on;   // the recording had a total
    double sum;     // sum of this sample
    uint64_t epoch; // number of the sample to which this sum belongs
    uint64_t due;   // number of the last sample that includes a program with a cell of this series
    uint32_t owner; // id of the program whose set has the series, or INGEST_NOBODY
    uint32_t column;
};

struct ingest_lines_state; // defined in lines.c

struct ingest {
    struct store *store;
    char *socket_path; // NULL = any
    struct store_label labels[STORE_LABELS_MAX];
    size_t label_count;
    char *label_text;
    int level;
    size_t programs_max;
    bool (*recorded)(void *user, uint32_t series, double *value);
    void (*open_spans)(void *user, bool (*each)(const struct store_event *event, void *each_user),
                       void *each_user);
    void *recorded_user;
    void (*keep)(void *user, uint64_t program, const struct ingest_descriptors *fds);
    void (*forget)(void *user, uint64_t program);
    void *keep_user;
    struct ingest_stats stats;

    struct program **programs;
    size_t program_count, program_capacity;
    uint32_t next_id;
    bool closing; // the last drain is running

    struct clock_fit fit;
    uint32_t *definers; // number of programs that define each series
    size_t definers_capacity;
    uint64_t sharing;           // how often a series has got a second definer
    uint8_t *turns_taken;       // whether each turn is taken; programs_max entries
    uint32_t turns;             // a power of two greater than all turns that were ever taken
    int64_t checked_at_ns;      // time of the last check of programs, monotonic
    struct store_point *points; // a batch of INGEST_BATCH_POINTS
    size_t point_count;

    uint32_t *accumulator_of; // each series' index in `accumulators`, plus 1
    size_t accumulator_of_capacity;
    struct accumulator *accumulators;
    size_t accumulator_count, accumulator_capacity;
    uint64_t epoch;
    int64_t sampled_ns; // time of the last recording of cells
    uint64_t recording; // identifies the agents of this job (segment.h)
    uint64_t began;     // stamp of our start: later stamps are ours
    uint64_t stamp;     // stamp of the last sample
    // the last stamp that earlier agents completed, as far as known
    uint64_t complete;

    // spans that are open in the recording, and not yet assigned to their programs
    struct open_spans recorded_spans;
    bool recorded_spans_read;
    struct open_spans line_spans; // spans that lines of text have begun
    size_t open_span_bytes;       // size of all copies of open spans
    bool open_spans_warned;

    // The state of lines.c, and the function with which ingest_destroy frees it.
    struct ingest_lines_state *lines;
    void (*lines_free)(struct ingest *in);
};

// Collects the labels of a series: first the agent's, then `own`, then the program's. If several
// have the same key, the first one counts. Returns false for more than STORE_LABELS_MAX labels, the
// size of `out`.
bool ingest_labels(const struct ingest *in, const struct program *p, const struct store_label *own,
                   size_t own_count, struct store_label *out, size_t *count);

// programs.c
void program_free(struct ingest *in, struct program *p);
void program_look(struct program *p); // sets p->gone if the process has ended
// Takes over the program. Returns 0; -EBUSY if another agent still reads it; -ENOMEM.
int program_own(struct ingest *in, struct program *p);
size_t programs_gone(struct ingest *in); // releases the programs that have ended

// definitions.c: reads new definitions.
void program_definitions(struct ingest *in, struct program *p);

void program_warn(struct program *p, const char *what); // logs the warning once for each program

// turns.c
void turns_define(struct ingest *in, struct program *p, uint32_t series); // adds p to the definers
void turns_release(struct ingest *in, struct program *p); // removes p from all definers
// Gives p a turn if it shares a series and has none yet.
void turns_take(struct ingest *in, struct program *p);
// Stores the turns of the program's used rings in p->conversion. Returns true if they have changed.
// Call it after all programs have their turns.
bool turns_share(const struct ingest *in, struct program *p, uint32_t rings);
bool turns_valid(const struct conversion *c);

// rings.c
// continues where the previous agent stopped; false: no memory
bool program_resume(struct program *p);
// saves the counts of drops, so the next agent does not count these drops again
void program_counted(struct program *p);
// Reads the head of each ring in use. A ring that starts meanwhile has no older records. Takes over
// the program if no other agent owns it.
void program_read_heads(struct ingest *in, struct program *p);
uint64_t program_spans_begun(const struct program *p, uint32_t slot); // as reported by the program
// reads the records before these heads
size_t program_drain(struct ingest *in, struct program *p, double *fullest);
void ingest_flush_points(struct ingest *in);

// accounts.c: stores in the agent's area of the program which part of each counter cell is in its
// series' total.
uint64_t accounts_stamp(struct ingest *in); // a stamp later than all stamps before
// continues from the accounts of earlier agents
void accounts_resume(struct ingest *in, struct program *p);
bool accounts_join(const struct ingest *in, struct program *p, uint32_t definition,
                   struct accumulator *a,
                   double *value); // for a new cell. True: the total already includes *value
void accounts_write(struct program *p, uint32_t definition, uint64_t stamp, double value,
                    double total);
void accounts_complete(struct program *p, uint64_t stamp);

// cells.c
enum cells_whose {
    CELLS_ALL,
    CELLS_ENDING,    // series of ended programs
    CELLS_REQUESTED, // changed cells of programs that send a query
};
size_t cells_sample(struct ingest *in, int64_t t_ns, enum cells_whose whose);
void cells_release(struct ingest *in, struct program *p); // its counters stay in the totals
void cells_free(struct cells *c);

#endif
