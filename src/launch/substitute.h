// substitute.h - {nodelist}, {hosts}, {hostfile} and {nnodes} in the words of a command.
//
//   sonde run -- mpirun --hostfile {hostfile} -n {nnodes} ./a.out
//
// Only exactly these four are replaced; every other brace stays as it is.
#ifndef SONDE_LAUNCH_SUBSTITUTE_H
#define SONDE_LAUNCH_SUBSTITUTE_H

#include <stddef.h>

struct substitution {
    const char *name; // with its braces
    const char *value;
};

enum { SUBSTITUTE_WORD_MAX = 1 << 22 }; // bytes of a word: a list of all hosts

// The words (ended by NULL) with the names replaced by their values, as a new array that substitute_free frees. NULL: no memory, or a word has become too long.
char **substitute(char *const *words, const struct substitution *with, size_t count);
void substitute_free(char **words);

#endif
