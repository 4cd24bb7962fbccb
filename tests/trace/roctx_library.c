// Stands in for ROCTX' library: returns other depths than ours, and prints at the end what it was
// told.
#include <stdint.h>
#include <stdio.h>

#pragma GCC visibility push(default)
void roctxMarkA(const char *text);
int roctxRangePushA(const char *text);
int roctxRangePop(void);
uint64_t roctxRangeStartA(const char *text);
void roctxRangeStop(uint64_t id);
#pragma GCC visibility pop

static int marks, pushes, pops;
static uint64_t starts, stopped;

void roctxMarkA(const char *text)
{
    marks += text != NULL;
}

int roctxRangePushA(const char *text)
{
    pushes += text != NULL;
    return 7;
}

int roctxRangePop(void)
{
    pops++;
    return 8;
}

uint64_t roctxRangeStartA(const char *text)
{
    return text ? ++starts : 0;
}

void roctxRangeStop(uint64_t id)
{
    stopped += id;
}

__attribute__((destructor)) static void print(void)
{
    printf("marks %d, pushes %d, pops %d, starts %d, stopped %d\n", marks, pushes, pops,
           (int)starts, (int)stopped);
}
