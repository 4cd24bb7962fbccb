// script.c - simulates the machine that a script describes.
#include "fake/script.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { COUNTS_MAX = 64 };

static struct gpu {
    double values[FAKE_KEYS_MAX];
    int fails[FAKE_KEYS_MAX];
    double counts[COUNTS_MAX];
    bool blocked;
    unsigned waiting; // number of blocked calls
} gpus[FAKE_GPUS_MAX];

// Recursive, because a thread that holds the lock may take it again.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned gpu_count;
static int init_result;

static void reset(unsigned count)
{
    gpu_count = count < FAKE_GPUS_MAX ? count : FAKE_GPUS_MAX;
    init_result = 0;
    memset(gpus, 0, sizeof gpus);
    for (unsigned i = 0; i < FAKE_GPUS_MAX; i++)
        for (int key = 0; fake_keys[key].name; key++)
            gpus[i].values[key] = fake_keys[key].value;
    if (fake_more.begin)
        fake_more.begin();
}

static bool tell(unsigned index, const char *verb, const char *name, double value)
{
    struct gpu *gpu = &gpus[index];
    bool known = false;
    if (strcmp(verb, "block") == 0 || strcmp(verb, "free") == 0) {
        gpu->blocked = verb[0] == 'b';
        return true;
    }
    if (fake_more.gpu && fake_more.gpu(index, verb, name))
        return true;
    for (int key = 0; fake_keys[key].name; key++) {
        if (strcmp(name, "all") != 0 && strcmp(name, fake_keys[key].name) != 0)
            continue;
        known = true;
        if (strcmp(verb, "set") == 0)
            gpu->values[key] = value;
        else if (strcmp(verb, "fail") == 0)
            gpu->fails[key] = (int)value;
        else
            return false;
    }
    return known;
}

bool fake_apply(const char *line)
{
    char verb[16] = "", which[1024] = "", name[32] = "";
    double value = 0;
    int words = sscanf(line, "%15s %1023s %31s %lf", verb, which, name, &value);
    if (words < 2 || verb[0] == '#')
        return words <= 0 || verb[0] == '#';
    if (strcmp(verb, "gpus") == 0) {
        reset((unsigned)strtoul(which, NULL, 10));
        return true;
    }
    if (strcmp(verb, "init") == 0) {
        init_result = (int)strtoul(which, NULL, 0);
        return true;
    }
    if (fake_more.machine && fake_more.machine(verb, which))
        return true;
    bool good = false;
    for (unsigned i = 0; i < gpu_count; i++)
        if (which[0] == '*' || strtoul(which, NULL, 10) == i)
            good = tell(i, verb, name, value);
    return good;
}

EXPORT bool fake_line(const char *line);
EXPORT bool fake_line(const char *line)
{
    pthread_mutex_lock(&lock);
    bool good = fake_apply(line);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return good;
}

EXPORT bool fake_blocked(unsigned gpu);
EXPORT bool fake_blocked(unsigned gpu)
{
    pthread_mutex_lock(&lock);
    bool blocked = gpus[gpu].waiting > 0;
    pthread_mutex_unlock(&lock);
    return blocked;
}

unsigned fake_gpu_count(void)
{
    pthread_mutex_lock(&lock);
    unsigned count = gpu_count;
    pthread_mutex_unlock(&lock);
    return count;
}

int fake_init_result(void)
{
    pthread_mutex_lock(&lock);
    int result = init_result;
    pthread_mutex_unlock(&lock);
    return result;
}

int fake_enter(unsigned gpu, int key)
{
    pthread_mutex_lock(&lock);
    while (gpus[gpu].blocked) {
        gpus[gpu].waiting++;
        pthread_cond_wait(&changed, &lock);
        gpus[gpu].waiting--;
    }
    return gpus[gpu].fails[key];
}

int fake_leave(int result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

double *fake_value(unsigned gpu, int key)
{
    return &gpus[gpu].values[key];
}

int fake_fails(unsigned gpu, int key)
{
    return gpus[gpu].fails[key];
}

int fake_ask(unsigned gpu, int key, double *value)
{
    int result = fake_enter(gpu, key);
    *value = *fake_value(gpu, key);
    return fake_leave(result);
}

double fake_count(unsigned gpu, int place, double step)
{
    pthread_mutex_lock(&lock);
    double count = gpus[gpu].counts[place] += step;
    pthread_mutex_unlock(&lock);
    return count;
}

void fake_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fake_wait(void)
{
    pthread_cond_wait(&changed, &lock);
}

void fake_changed(void)
{
    pthread_cond_broadcast(&changed);
}
