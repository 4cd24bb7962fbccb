// calls WHAT COUNT: prints the nanoseconds of processor time per call of a loop.
#include "measure.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    char byte = 0;
    long count = atol(argv[2]);
    FILE *file = tmpfile();
    int fd = file ? fileno(file) : -1;
    if (fd < 0 || pwrite(fd, &byte, 1, 0) != 1)
        return 1;
    double begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < count; i++) {
        if (strcmp(argv[1], "pread") == 0 && pread(fd, &byte, 1, 0) != 1)
            return 1;
        if (strcmp(argv[1], "fwrite") == 0 && fwrite(&byte, 1, 1, file) != 1)
            return 1;
    }
    printf("%.2f\n", (now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / (double)count);
    return 0;
}
