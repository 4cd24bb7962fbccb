// stuck_report.c - preloaded into sonde, makes `sonde report` wait for ever before it begins.
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void wait_for_ever(int argc, char **argv)
{
    while (argc > 1 && strcmp(argv[1], "report") == 0)
        pause();
}
