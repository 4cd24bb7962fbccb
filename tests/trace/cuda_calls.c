// Loads the library of CUDA_INJECTION64_PATH as NVIDIA's driver does, and lets the library that
// stands in for CUPTI (SONDE_CUPTI) report work of GPUs. Arguments: known (numbers that
// test_cuda.py has, too), names COUNT (kernels with so many names), fork, killed, or nothing (only
// starts).
#include "cupti_library.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct cupti_library *gpu;

static const char fill[] = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE"
                           "St5arrayIPcLm1EEEEviT0_T1_",
                  fill_half[] = "_ZN2at6native29vectorized_elementwise_kernelILi8ENS0_"
                                "11FillFunctorIN3c104HalfEEESt5arrayIPcLm1EEEEviT0_T1_";

static void known(void)
{
    // 1,000 kernels of 1 ms, each of which begins with the second half of the one before: 0.5005 s.
    for (int i = 0; i < 1000; i++)
        gpu->kernel(i % 2 ? fill : fill_half, 0, 1 + i * 0.0005, 1 + i * 0.0005 + 0.001);
    // On another GPU two streams at the same time: 30 s of kernels in 10 s. The buffer has them in
    // the order in which they end.
    for (int i = 0; i < 10; i++) {
        gpu->kernel("gemm", 1, 10 + i, 10 + i + 1);
        gpu->kernel("gemm", 1, 10 + i, 10 + i + 1);
        gpu->kernel("gemm", 1, 10 + i - (i % 2), 10 + i - (i % 2) + 1);
    }
    gpu->kernel(NULL, 0, 2, 2.25);
    gpu->kernel("never", 0, -1, -1);
    gpu->kernel("backwards", 0, 2, 1);
    gpu->kernel("elsewhere", 1000, 2, 3);
    for (int i = 0; i < 5; i++) {
        gpu->copy(CUPTI_COPY, CUPTI_HOST_TO_DEVICE, CUPTI_PAGEABLE, 3, 1000, 3, 3.5);
        gpu->copy(CUPTI_COPY, CUPTI_HOST_TO_DEVICE, 2, 3, 100, 3, 3.25);
        gpu->copy(CUPTI_COPY, CUPTI_DEVICE_TO_HOST, 3, CUPTI_PAGEABLE, 10, 3, 3.125);
        gpu->copy(CUPTI_COPY, CUPTI_DEVICE_TO_DEVICE, 3, 3, 1 << 20, 3, 4);
        gpu->copy(CUPTI_COPY, 3, 3, 4, 7, 3, 4); // to an array
        gpu->copy(CUPTI_COPY_BETWEEN_GPUS, CUPTI_GPU_TO_GPU, 3, 3, 5, 3, 4);
        gpu->copy(CUPTI_SET, 1, 0, 0, 50, 3, 4);
        gpu->wait(CUPTI_WAIT_FOR_EVENT, 4, 4.5);
        gpu->wait(CUPTI_STREAM_WAITS, 4, 5);
        gpu->wait(CUPTI_WAIT_FOR_STREAM, 4, 4.25);
        gpu->wait(CUPTI_WAIT_FOR_CONTEXT, 4, 4.125);
        gpu->other();
    }
    gpu->lose(42);
}

static void names(int count)
{
    static char texts[6000][16];
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < count && i < 6000; i++) {
            snprintf(texts[i], sizeof texts[i], "kernel_%d", i);
            gpu->kernel(texts[i], 0, round * 6000 + i, round * 6000 + i + 1);
        }
}

int main(int argc, char **argv)
{
    const char *file = getenv("CUDA_INJECTION64_PATH"), *cupti = getenv("SONDE_CUPTI"),
               *what = argc > 1 ? argv[1] : "";
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*initialize)(void) = NULL;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (!initialize || initialize() != 1) {
        fprintf(stderr, "no library: %s\n", dlerror());
        return 2;
    }
    library = cupti ? dlopen(cupti, RTLD_NOW | RTLD_NOLOAD) : NULL;
    gpu = library ? dlsym(library, "cupti_library") : NULL;
    if (what[0] && !gpu) {
        puts("off");
        return 0;
    }
    if (strcmp(what, "known") == 0)
        known();
    else if (strcmp(what, "names") == 0 && argc > 2)
        names(atoi(argv[2]));
    else if (strcmp(what, "fork") == 0) {
        gpu->kernel("before", 0, 1, 2);
        pid_t child = fork();
        if (child == 0)
            exit(0); // with all functions of atexit
        waitpid(child, NULL, 0);
        gpu->kernel("after", 0, 2, 3);
    } else if (strcmp(what, "killed") == 0) {
        for (int i = 0; i < 2000; i++) // more than a buffer
            gpu->kernel("early", 0, i, i + 1);
        fflush(stdout);
        raise(SIGKILL);
    }
    puts("done");
    return 0;
}
