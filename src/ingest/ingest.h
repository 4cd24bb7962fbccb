// ingest.h - the agent's side of emitting: rings and cells of programs, and text lines.
//
// Called by the one thread that owns the store. Everything read from a program is untrusted: bad
// contents of its shared memory damage only that program's own data, and are counted.
#ifndef SONDE_INGEST_INGEST_H
#define SONDE_INGEST_INGEST_H

#include "store/store.h"

#include <sys/types.h>

struct ingest;
struct ingest_descriptors;

struct ingest_options {
    // the agent ignores programs whose segment names another socket
    const char *socket_path;
    const struct store_label *labels; // added to every series (host)
    size_t label_count;
    int level;           // metrics above this level are ignored
    size_t programs_max; // 0 = 4096

    // Stores the last value that the series had in the recording when this agent began. Returns
    // false if it had none. NULL: no series had a value. The totals of counters continue from it
    // (accounts.c), and so do StatsD's counters and gauges.
    bool (*recorded)(void *user, uint32_t series, double *value);
    // Calls `each` with the events that earlier agents have recorded, until `each` returns false.
    // NULL: there are none.
    void (*open_spans)(void *user, bool (*each)(const struct store_event *event, void *each_user),
                       void *each_user);
    void *recorded_user; // for both callbacks

    // `keep` is called when a program is attached, and `forget` when it has been read to its end.
    // So the launcher can keep the program's memory for the next agent. The descriptors are valid
    // during the call. `program` identifies the segment on this machine. NULL: the memory is not
    // kept.
    void (*keep)(void *user, uint64_t program, const struct ingest_descriptors *fds);
    void (*forget)(void *user, uint64_t program);
    void *keep_user;
};

struct ingest_stats {
    uint64_t programs;         // number of attached programs
    uint64_t programs_total;   // number of programs attached since the start
    uint64_t points;           // read from rings (a row of n values counts n)
    uint64_t dropped_full;     // values that programs dropped because a ring was full
    uint64_t dropped_corrupt;  // invalid ring contents (bytes / 8)
    uint64_t dropped_store;    // points that the store refused
    uint64_t dropped_limit;    // values over a limit of names, tags or series
    uint64_t clamped;          // impossible times of records, corrected (they are also in points)
    uint64_t lines, lines_bad; // of text protocols
};

int ingest_create(struct store *store, const struct ingest_options *options, struct ingest **out,
                  struct error *e);
void ingest_destroy(struct ingest *in); // reads all rings once more

// The descriptors of the two memfds of a program (src/emit/segment.h).
struct ingest_descriptors {
    int segment, agent_area; // -1 = none
    // how often the program had turned to another agent (sonde_connect) when it passed them
    uint32_t moves;
};

void ingest_descriptors_close(struct ingest_descriptors *fds);

// Takes over a program's segment. The call closes the descriptors. `pid` is the peer's pid
// according to the kernel. Returns 0, -EBUSY (this segment is attached already), -EPROTO (not a
// segment), -EPROTONOSUPPORT (made by another version of sonde), -ENFILE (programs_max), or another
// negative errno.
int ingest_attach(struct ingest *in, struct ingest_descriptors fds, pid_t pid);

// Finds programs that started before this agent, or that a dead agent left behind. Searches /proc
// for segments of our user and our socket, also in containers. Returns the number of programs that
// it attached.
int ingest_adopt(struct ingest *in);

// Moves the contents of the rings into the store, and returns the number of points. It reads all
// rings of a program that has exited, then releases the program. *fullest (may be NULL) gets the
// fill level of the fullest ring, 0..1; if it is high, call again sooner.
size_t ingest_drain(struct ingest *in, double *fullest);

// Called when the program with this pid has closed its connection: checks at once whether it has
// ended. A program that we cannot see (a negative pid) is released with its connection, even if it
// only called exec or closed all descriptors; it may connect again.
void ingest_hangup(struct ingest *in, pid_t pid);

// Records all cells at t_ns. A counter is summed over threads and programs, including ended
// programs; a gauge keeps its value. The times of samples never decrease: within a second, a sample
// with an earlier t_ns gets the time of the previous one.
size_t ingest_sample_cells(struct ingest *in, int64_t t_ns);

// Call it when process `pid` sends a query. The next ingest_sample_requested then records the
// changed cells of this process, or of its nearest ancestor that emits. If the process is not
// visible (pid 0), it records the changed cells of all programs that are not visible.
void ingest_ask_cells(struct ingest *in, pid_t pid);
size_t ingest_sample_requested(struct ingest *in, int64_t t_ns);

void ingest_get_stats(const struct ingest *in, struct ingest_stats *out);

// Call it after the drops that this agent has counted are in the recording. The next agent then
// does not count them again.
void ingest_counts_recorded(struct ingest *in);

// Text lines: OpenTSDB ("put m ts v k=v"), StatsD ("m:1|c|@0.1|#k:v"), Influx ("m,k=v f=1 ts") or
// plain ("m 0.5 k=v"). Each line may use another protocol.
struct ingest_lines;
int ingest_lines_create(struct ingest *in, struct ingest_lines **out); // one per connection
void ingest_lines_destroy(struct ingest_lines *l);

// Reads the next piece of the stream, and joins lines that were cut between two pieces. Appends
// responses for the sender to *reply: one clear line for each bad line.
void ingest_lines_feed(struct ingest_lines *l, struct str piece, struct buf *reply);
// Ends the stream. Its last line may lack a newline.
void ingest_lines_end(struct ingest_lines *l, struct buf *reply);

// Records StatsD's counters, gauges and sets at t_ns, and empties the sets. Call it with
// ingest_sample_cells.
void ingest_lines_sample(struct ingest *in, int64_t t_ns);

#endif
