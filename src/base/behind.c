#include "base/behind.h"

#include "base/parallel.h"

static void *do_work(void *user)
{
    struct behind *b = user;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->work && !b->ending)
            pthread_cond_wait(&b->changed, &b->lock);
        if (!b->work)
            break;
        behind_fn *work = b->work;
        b->work = NULL;
        pthread_mutex_unlock(&b->lock);
        int result = work(b->user);
        pthread_mutex_lock(&b->lock);
        b->result = result;
        b->busy = false;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

void behind_begin(struct behind *b, behind_fn *work, void *user)
{
    if (!b->started && parallel_processors() > 1)
        b->started = parallel_start(&b->thread, do_work, b) == 0;
    if (!b->started) {
        b->result = work(user);
        return;
    }
    pthread_mutex_lock(&b->lock);
    b->work = work;
    b->user = user;
    b->busy = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

int behind_wait(struct behind *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->busy)
        pthread_cond_wait(&b->changed, &b->lock);
    int result = b->result;
    b->result = 0;
    pthread_mutex_unlock(&b->lock);
    return result;
}

int behind_end(struct behind *b)
{
    int result = behind_wait(b);
    if (!b->started)
        return result;
    pthread_mutex_lock(&b->lock);
    b->ending = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    b->started = b->ending = false;
    return result;
}
