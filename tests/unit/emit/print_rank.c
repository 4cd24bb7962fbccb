// Prints the rank that libsonde gives this process, or "none". With arguments it sets NAME=VALUE in
// its own environment first, as programs do that find out their rank by themselves.
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
