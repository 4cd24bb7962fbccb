// hash.h - a 64-bit hash for tables in memory, CRC32C for bytes on disk.
#ifndef SONDE_BASE_HASH_H
#define SONDE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

// Hashes bytes for tables in memory. The hash does not resist an adversary. It may change between
// versions, so it must not be stored.
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);

static inline uint64_t hash_u64(uint64_t x)
{
    // the finaliser of splitmix64
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// hash_u64_inverse(hash_u64(x)) == x
static inline uint64_t hash_u64_inverse(uint64_t x)
{
    x ^= x >> 31 ^ x >> 62;
    x *= 0x319642b2d24d8ec3u;
    x ^= x >> 27 ^ x >> 54;
    x *= 0x96de1b173f119089u;
    return x ^ x >> 30 ^ x >> 60;
}

// Computes CRC-32C (Castagnoli, reflected, initial and final inversion), as used by iSCSI, ext4 and
// Btrfs; crc32c(0, "123456789", 9) is 0xe3069283. To continue over several pieces, pass the last
// result as `crc`. Uses hardware instructions if available.
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

#endif
