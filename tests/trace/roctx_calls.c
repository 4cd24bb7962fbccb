// Calls ROCTX' functions as programs do, and as they do not. Prints the depths that they return, or
// "off" if no library has them. With LINKED, the program is linked with ROCTX' library.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static void (*mark)(const char *);
static int (*push)(const char *), (*pop)(void);
static uint64_t (*start)(const char *);
static void (*stop)(uint64_t);

#ifdef LINKED
void roctxMarkA(const char *text);
int roctxRangePushA(const char *text);
int roctxRangePop(void);
uint64_t roctxRangeStartA(const char *text);
void roctxRangeStop(uint64_t id);
#define FIND(to, name) to = name
#else
#define FIND(to, name) *(void **)&to = dlsym(RTLD_DEFAULT, #name)
#endif

static void *stop_in_thread(void *id)
{
    stop(*(uint64_t *)id);
    stop(*(uint64_t *)id); // again
    return NULL;
}

int main(void)
{
    FIND(mark, roctxMarkA);
    FIND(push, roctxRangePushA);
    FIND(pop, roctxRangePop);
    FIND(start, roctxRangeStartA);
    FIND(stop, roctxRangeStop);
    if (!mark || !push || !pop || !start || !stop) {
        printf("off\n");
        return 0;
    }
    printf("%d", pop()); // none is open
    printf(" %d", push("outer"));
    printf(" %d", push("inner"));
    mark("half");
    printf(" %d", pop());
    printf(" %d", pop());
    printf(" %d\n", push(NULL));
    pop();
    pthread_t thread;
    uint64_t id = start("shared");
    pthread_create(&thread, NULL, stop_in_thread, &id);
    pthread_join(thread, NULL);
    stop(12345);
    uint64_t ids[1100];
    for (int i = 0; i < 1100; i++)
        ids[i] = start("many");
    for (int i = 0; i < 1100; i++)
        stop(ids[i]);
    for (int i = 0; i < 12000; i++) {
        push("often");
        pop();
    }
    return 0;
}
