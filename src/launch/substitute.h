// substitute.h - puts the job's nodes into the words of a command.
//
//   sonde run -- mpirun --hostfile {hostfile} -n {nnodes} ./a.out
//
//   {hosts}               replaced if it is the whole word,
//   --name={hosts}        or the whole value of an option,
//   -n{nnodes}            also of an option with a single letter
//   … {sonde:hosts} …     replaced anywhere in a word
//   {{hosts}}             becomes {hosts} if it is the whole word
//
// All other braces belong to the command: python -c 'print(f"{hosts}")' runs unchanged.
#ifndef SONDE_LAUNCH_SUBSTITUTE_H
#define SONDE_LAUNCH_SUBSTITUTE_H

#include <stdbool.h>

enum substitution {
    SUBSTITUTE_NODELIST,
    SUBSTITUTE_HOSTS,
    SUBSTITUTE_HOSTFILE,
    SUBSTITUTE_NNODES,
    SUBSTITUTE_COUNT
};

enum { SUBSTITUTE_WORD_MAX = 1 << 22 }; // bytes of a word: enough for a list of all hosts

// Returns a copy of the words (ended by NULL) with the placeholders replaced; free it with
// substitute_free. NULL without memory, or if a word becomes too long.
char **substitute(char *const *words, const char *const values[SUBSTITUTE_COUNT]);
void substitute_free(char **words);

// Whether any word has a placeholder.
bool substitute_needed(char *const *words);

#endif
