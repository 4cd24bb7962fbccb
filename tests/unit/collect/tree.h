// tree.h - a temporary folder with a /proc, for tests that write the kernel's files.
#ifndef SONDE_TESTS_COLLECT_TREE_H
#define SONDE_TESTS_COLLECT_TREE_H

#include "collect/collect.h"

struct tree {
    char root[64];
};

void tree_make(struct tree *t);
void tree_write(struct tree *t, const char *path,
                // path: "proc/stat"; replaces the contents in place
                const char *text);
void tree_copy(struct tree *t, const char *recorded); // all files of trees/RECORDED
void tree_link(struct tree *t, const char *path, const char *target);
void tree_remove(struct tree *t, const char *path);
void tree_remove_all(struct tree *t, const char *path);
void tree_chmod(struct tree *t, const char *path, unsigned mode);
void tree_free(struct tree *t);

// A collector on a root folder, and the values of its last sample by name.
struct probe {
    struct collect *c;
};
extern int64_t probe_deadline_ns; // of later probes; 0 = the collectors' own
struct probe probe_make(const char *root, int level, uid_t uid);
struct probe probe_make_with(const char *root, int level, uid_t uid, const char *job,
                             const char *sources);
void probe_free(struct probe *p);

// Samples the source. Returns the result of collect_sample, or -ENXIO if the source is left out.
int probe_sample(struct probe *p, const char *source, int64_t t_ns);

// The same with collect_sample_late.
int probe_sample_late(struct probe *p, const char *source, int64_t t_ns);
bool probe_owes(struct probe *p, const char *source);

// The value of the last probe_sample; fails the test for an unknown name.
double probe_value(struct probe *p, const char *source, const char *name);

// The same for a series with tags of its own (NULL = no tag).
double probe_tagged(struct probe *p, const char *source, const char *name, const char *first,
                    const char *second);
bool probe_has(struct probe *p, const char *source, const char *name, const char *tag);
uint32_t probe_generation(struct probe *p, const char *source);

#endif
