// Seed and length of a randomized test, and random numbers: from SONDE_TEST_SEED (else the test's
// own fixed seed) and the multiplier SONDE_TEST_ROUNDS. tools/campaign repeats the suite `random`
// with ever new values of both.
#ifndef TESTS_SEED_H
#define TESTS_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Returns the seed and logs it, so that a failure can be repeated.
static inline uint64_t test_seed(uint64_t otherwise)
{
    const char *text = getenv("SONDE_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : otherwise;
    printf("SONDE_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

// Returns the next number of a generator (SplitMix64). Any number can be its first state, such as a
// seed.
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

// Returns the first state of a xorshift generator: never 0, and unrelated for neighbouring seeds.
static inline uint64_t test_random_state(uint64_t otherwise)
{
    uint64_t seed = test_seed(otherwise);
    return test_random(&seed) | 1;
}

static inline unsigned test_rounds(void)
{
    const char *text = getenv("SONDE_TEST_ROUNDS");
    unsigned long rounds = text ? strtoul(text, NULL, 10) : 1;
    return rounds < 1 ? 1 : rounds > 1000000 ? 1000000 : (unsigned)rounds;
}

#endif
