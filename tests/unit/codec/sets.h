// sets.h - the instruction sets that this machine has.
#ifndef SONDE_TESTS_SETS_H
#define SONDE_TESTS_SETS_H

#include "store/codec_parts.h"

#include <string.h>

static const struct codec_kernels *sets[3];
static size_t n_sets;

static void find_sets(void)
{
    codec_force_scalar(true);
    sets[n_sets++] = codec_kernels();
    codec_force_scalar(false);
    if (codec_kernels() != sets[0])
        sets[n_sets++] = codec_kernels();
#if defined __x86_64__
    if (strcmp(codec_kernels()->name, "avx512") == 0) // old compilers cannot build that set
        sets[n_sets++] = &codec_kernels_avx2;         // a processor with AVX-512 has AVX2
#endif
}

#endif
