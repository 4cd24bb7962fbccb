// Prints the rank that libsonde finds for this process, or "none". With arguments NAME=VALUE it
// first changes its own environment, like programs that determine their rank themselves.
#include "emit/rank.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        putenv(argv[i]);
    const char *rank = emit_rank();
    puts(rank ? rank : "none");
    return 0;
}
