// behind.h - one piece of work at a time in a thread of its own, while the caller goes on.
//
//     struct behind b = BEHIND_IDLE;
//     behind_begin(&b, write_block, &first);
//     …                                       // prepare the next one
//     int rc = behind_wait(&b);               // what write_block returned
//     behind_begin(&b, write_block, &second);
//     rc = behind_end(&b);
//
// Only one thread may call these functions. The thread starts with the first piece of work; if it
// cannot be started, or there is only one processor, behind_begin does the work itself.
#ifndef SONDE_BASE_BEHIND_H
#define SONDE_BASE_BEHIND_H

#include <pthread.h>
#include <stdbool.h>

typedef int behind_fn(void *user);

struct behind {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, ending, busy;
    behind_fn *work; // NULL: none waits
    void *user;
    int result; // of the finished work; 0 once behind_wait has returned it
};

#define BEHIND_IDLE                                                            \
    (struct behind)                                                            \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

// Begins work(user). The caller has waited for the work before.
void behind_begin(struct behind *b, behind_fn *work, void *user);

// Waits until the work is done. Returns what it returned; 0 if there was none since the last call.
int behind_wait(struct behind *b);

// The same, and ends the thread.
int behind_end(struct behind *b);

#endif
