// substitute.h - the job's nodes in the words of a command.
//
//   sonde run -- mpirun --hostfile {hostfile} -n {nnodes} ./a.out
//
//   {hosts}               a whole word is replaced
//   --name={hosts}        and so is the whole value of an option,
//   -n{nnodes}            with one letter, too
//   … {sonde:hosts} …     anywhere in a word
//   {{hosts}}             a whole word: stays as {hosts}
//
// Every other brace is the command's own: python -c 'print(f"{hosts}")' runs as it is written.
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

enum { SUBSTITUTE_WORD_MAX = 1 << 22 }; // bytes of a word: a list of all hosts

// The words (ended by NULL) with values in the places of names, as a new array that substitute_free
// frees. NULL: no memory, or a word has become too long.
char **substitute(char *const *words, const char *const values[SUBSTITUTE_COUNT]);
void substitute_free(char **words);

// Whether a word would be replaced.
bool substitute_wanted(char *const *words);

#endif
