// ingest_internal.h - declarations that only the files of src/ingest share.
#ifndef SONDE_INGEST_INGEST_INTERNAL_H
#define SONDE_INGEST_INGEST_INTERNAL_H

#include "emit/segment.h"
#include "ingest/conversion.h"
#include "ingest/ingest.h"
#include "ingest/open_spans.h"

enum {
    INGEST_PROGRAMS_MAX_DEFAULT = 4096,
    INGEST_BATCH_POINTS = 4096,
    INGEST_CELL_CHUNK = 256, // series of a set of cells
    INGEST_ENDED_EARLY_MAX = 1024,
    INGEST_NOBODY = UINT32_MAX,
};
#define INGEST_START_SLACK_NS NS_PER_S // so much earlier than it seems may a process have begun

enum definition_state {
    DEFINITION_OFF,   // above the level: its values are not taken, and not missed
    DEFINITION_LIMIT, // refused by the store: its values are counted as dropped_limit
    DEFINITION_METRIC,
    DEFINITION_GROUP,
    DEFINITION_PROCESS, // number 0
};

struct group {
    uint32_t set;
    uint32_t members; // values in a record
    uint32_t columns; // values in a row of the set: the members that are on, each series once
    uint32_t from[];  // columns: which member
};

struct definition {
    uint8_t state, kind;
    bool has_cell;   // its cell has been seen in use
    bool has_sum;    // …added to
    uint32_t series; // of a metric
    struct group *group;
};

// The cells in use of one program, in the order in which they were found. A chunk of them is a set
// of the store; only the last one grows, so few sets are ever made.
struct cells {
    uint32_t *definitions; // which
    double *values;        // as last read
    size_t count, capacity;
    uint32_t *sets;        // by chunk
    uint32_t *set_columns; // how many the set was made for; 0 = none yet
    size_t chunks;
    double *sums; // scratch, by definition
    size_t sums_capacity;
    size_t accounts_reserved; // bytes of the agent's area that have memory
    bool unrecorded;          // a value has changed since they were recorded
};

struct program {
    uint32_t id; // of this program in this ingest; never used twice
    pid_t pid;
    uint64_t start_ticks; // of the process; 0 = not to be seen
    int pidfd;            // -1 = gone, or none could be had
    bool gone;            // seen dead: the next drain is the last
    bool asked;           // it sends a query: the next ingest_sample_asked records its cells
    bool warned;          // that it writes nonsense
    bool warned_ahead;    // that its times are ahead
    dev_t device;
    ino_t inode, agent_inode;
    uint64_t salt;    // makes span ids of programs differ
    int64_t start_ns; // boot time; no record is older
    uint32_t clock, slots;
    uint64_t ring_bytes;
    struct segment_layout at;
    const char *base; // all of it, read-only
    struct segment_agent *agent;
    // the agent's area once more: the holder of its lock reads the segment; -1 = it could not be
    // opened
    int lock_fd;
    bool owned;     // we hold the lock, and the members below come from the agent before us
    uint32_t moves; // header.moves when the program handed itself over to us

    uint64_t *heads; // of this round, by slot
    uint32_t used;   // slots that have a ring, as of this round
    // ours; those in the segment are for the program and for the next agent
    uint64_t *tails;
    uint64_t *dropped;      // as last read, by slot
    int64_t *newest;        // time of the last point or row by the program's clock, by slot
    uint64_t lost, refused; // header.dropped, header.refused as last read
    // which of the two counts in the segment was written last, by slot
    uint8_t *commits;
    struct conversion conversion; // of this drain; at first, of the agent before us
    // another program defines one of its series: it has a turn (conversion.h)
    bool shares;
    uint32_t turn;
    uint64_t sharing_seen; // in->sharing when that was looked at
    // that was killed in its drain: what it had claimed is taken by its conversion
    bool interrupted;
    uint64_t accounts_since,
        // stamps of the accounts that count (segment.h), as another agent left them
        accounts_complete;

    size_t definitions_at; // bytes read
    bool definitions_bad;  // they made no sense; no more are read
    struct definition *definitions;
    size_t definition_count, definition_capacity;
    struct store_label tags[SEGMENT_TAGS_MAX]; // of the process
    size_t tag_count;
    char *tag_text;

    struct cells cells;
    struct open_spans open_spans;
    // Numbers of spans whose end this drain has read in an earlier slot than their begin: another
    // thread has closed them.
    uint64_t *ended_early;
    size_t ended_early_count, ended_early_capacity;
};

// One a series that has cells: programs come and go, its total does not fall.
struct accumulator {
    double gone;    // counters: what programs that are gone had added
    double base;    // the total that `gone` goes on from
    bool begun;     // gone and base are set
    bool goes_on;   // the recording held a total
    double sum;     // of this sample
    uint64_t epoch; // the sample that sum belongs to
    uint64_t due;   // the last sample that is about a program with a part in it
    uint32_t owner; // id of the program whose set has the series; INGEST_NOBODY
    uint32_t column;
};

struct ingest_lines_state; // of lines*.c

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
    bool closing; // in the last drain

    struct clock_fit fit;
    uint32_t *definers; // by series: programs that define it
    size_t definers_capacity;
    uint64_t sharing;           // how often a series has got a second one
    uint8_t *turns_taken;       // by turn; programs_max of them
    uint32_t turns;             // a power of two above all that were ever taken
    int64_t checked_at_ns;      // when programs were looked at last, monotonic
    struct store_point *points; // INGEST_BATCH_POINTS
    size_t point_count;

    uint32_t *accumulator_of; // by series: index + 1
    size_t accumulator_of_capacity;
    struct accumulator *accumulators;
    size_t accumulator_count, accumulator_capacity;
    uint64_t epoch;
    int64_t sampled_ns; // when cells were recorded last
    uint64_t recording; // names the agents of this job (segment.h)
    uint64_t began;     // stamp: later ones are ours
    uint64_t stamp;     // of the last sample
    // the last stamp that agents before this one have completed, as far as we have seen
    uint64_t complete;

    struct open_spans recorded_spans; // open in the recording, and not yet given to their programs
    bool recorded_spans_read;
    size_t open_span_bytes; // of all copies
    bool open_spans_warned;

    // For lines*.c: its state, and how ingest_destroy frees it.
    struct ingest_lines_state *lines;
    void (*lines_free)(struct ingest *in);
};

// Labels of a series: the agent's, then those given, then those of the program, of which each key
// is taken once, first come. False: over STORE_LABELS_MAX. `out` has room for STORE_LABELS_MAX.
bool ingest_labels(const struct ingest *in, const struct program *p, const struct store_label *own,
                   size_t own_count, struct store_label *out, size_t *count);

// programs.c
void program_free(struct ingest *in, struct program *p);
void program_look(struct program *p); // sets gone
// 0; -EBUSY: another agent still reads it; -ENOMEM
int program_own(struct ingest *in, struct program *p);
size_t programs_gone(struct ingest *in); // lets go of them

// definitions.c: reads new definitions.
void program_definitions(struct ingest *in, struct program *p);

void program_warn(struct program *p, const char *what); // once a program

// turns.c
void turns_define(struct ingest *in, struct program *p, uint32_t series); // p defines it
void turns_let_go(struct ingest *in, struct program *p);                  // all that it has defined
// if p shares a series and has no turn yet
void turns_take(struct ingest *in, struct program *p);
// Those of the program's rings in use, in p->conversion. True: they have changed. All programs have
// taken theirs.
bool turns_share(const struct ingest *in, struct program *p, uint32_t rings);
bool turns_valid(const struct conversion *c);

// rings.c
bool program_resume(struct program *p);  // where the agent before us has stopped; false: no memory
void program_counted(struct program *p); // the next agent does not count these again
// How far each ring in use is written. A ring that is begun meanwhile holds nothing that is older.
// Takes the program, if it is free.
void program_read_heads(struct ingest *in, struct program *p);
uint64_t program_spans_begun(const struct program *p, uint32_t slot);        // as the program says
size_t program_drain(struct ingest *in, struct program *p, double *fullest); // up to these heads
void ingest_flush_points(struct ingest *in);

// accounts.c: how much of each counter cell is in its series' total, kept in the agent's area of
// the program.
uint64_t accounts_stamp(struct ingest *in); // later than all before
// continues from the accounts of earlier agents
void accounts_resume(struct ingest *in, struct program *p);
bool accounts_join(const struct ingest *in, struct program *p, uint32_t definition,
                   struct accumulator *a,
                   double *value); // a new cell; true: *value of it is in the total
void accounts_write(struct program *p, uint32_t definition, uint64_t stamp, double value,
                    double total);
void accounts_complete(struct program *p, uint64_t stamp);

// cells.c
enum cells_whose {
    CELLS_ALL,
    CELLS_ENDING, // series of programs that are gone
    CELLS_ASKED,  // series of programs that ask, and whose cells have changed
};
size_t cells_sample(struct ingest *in, int64_t t_ns, enum cells_whose whose);
void cells_let_go(struct ingest *in, struct program *p); // its counters stay in the totals
void cells_free(struct cells *c);

#endif
