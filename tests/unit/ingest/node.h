// node.h - a node for tests: a socket, an ingest on a fake store, and real programs that emit to
// it.
#ifndef SONDE_TESTS_NODE_H
#define SONDE_TESTS_NODE_H

#include "base/clock.h"
#include "fake_store.h"
#include "ingest/hello.h"
#include "ingest/ingest.h"
#include "unit/test.h"

enum { NODE_CHILDREN_MAX = 128, NODE_PATIENCE_S = 120 };

struct child {
    pid_t pid;
    int in, out; // its standard input and output
    int status;  // from waitpid, valid once `ended`
    bool ended;
    char text[4096]; // its output
    size_t size;
};

struct node {
    char folder[64], path[96];
    struct store *store;
    struct ingest *in; // NULL: no agent
    int listener;
    int connections[NODE_CHILDREN_MAX];
    pid_t peers[NODE_CHILDREN_MAX];
    bool greeted[NODE_CHILDREN_MAX]; // its HELLO has arrived
    size_t connection_count;
    struct child children[NODE_CHILDREN_MAX];
    size_t child_count;
    uint64_t bells;
    uint64_t refused_segments;
    int level;
    // new agents do not search /proc, like an agent in a PID namespace of its own
    bool blind;
    bool deaf;                  // accepts no connections
    struct ingest_stats before; // of stopped agents
};

void node_open(struct node *n);
void node_close(struct node *n); // kills remaining programs

void node_agent_start(struct node *n); // listens, then adopts running programs
void node_agent_stop(struct node *n);
struct ingest_stats node_stats(const struct node *n); // of all agents so far

// Starts `emitter MODE ARGUMENTS…` (a list that ends with NULL) with SONDE_LEVEL=1, SONDE_SOCKET,
// and `environment` (entries "K=V", or "K" to remove a variable; NULL-terminated; may be NULL).
struct child *node_spawn(struct node *n, const char *const *environment, const char *mode, ...);
struct child *node_spawn_program(struct node *n, const char *const *environment,
                                 const char *const *arguments);

void node_round(struct node *n); // handles all pending events; waits at most a few ms
// waits for this text in its output
void node_until_said(struct node *n, struct child *c, const char *text);
// writes to its standard input
void node_say(struct child *c, const char *text);
void node_until_ended(struct node *n, struct child *c);
// waits until all children have ended and the ingest has released all of them
void node_until_all_gone(struct node *n);
// the number in its output line "key=NUMBER"
uint64_t child_number(const struct child *c, const char *key);

// Skips the test where no program can filter its system calls, as under qemu-user.
void node_needs_seccomp(void);

#endif
