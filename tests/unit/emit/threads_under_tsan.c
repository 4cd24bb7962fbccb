// An application with ThreadSanitizer and a libsonde without it: threads that take over each
// other's slots must not count as a race. ThreadSanitizer ends the program with 66 if it finds one.
#include "sonde.h"

#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 20, THREADS = 8, CALLS = 100 };

static void *work(void *unused)
{
    for (int i = 0; i < CALLS; i++) {
        sonde_span_begin("a name that is long enough for memcpy()", "key",
                         "a value that is copied by a call, too");
        sonde_annotate("a remark of some length");
        sonde_emit(sonde_gauge("value", ""), i);
        sonde_add(sonde_counter("work_total", ""), 1);
        sonde_set(sonde_gauge("level", ""), i);
        sonde_span_end();
    }
    return unused;
}

int main(void)
{
    setenv("SONDE_LEVEL", "1", 1);
    setenv("SONDE_SOCKET", "/nowhere/agent.sock", 1);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            if (pthread_create(&threads[i], NULL, work, NULL) != 0)
                return 1;
            if (i % 2)
                pthread_detach(threads[i]); // may end during the next round
        }
        for (int i = 0; i < THREADS; i += 2)
            pthread_join(threads[i], NULL);
    }
    return sonde_dropped() == 0;
}
