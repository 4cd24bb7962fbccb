#include "base/hash.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

static uint64_t load64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed)
{
    // Each step hashes 16 bytes with a 64 x 64 -> 128 bit multiplication. The odd constants are
    // random.
    static const uint64_t k1 = 0x9e3779b97f4a7c15u, k2 = 0xd6e8feb86659fd93u;
    const unsigned char *p = data;
    uint64_t h = seed ^ fold(size ^ k1, k2);
    size_t left = size;
    for (; left >= 16; left -= 16, p += 16)
        h = fold(load64(p) ^ k1 ^ h, load64(p + 8) ^ k2);
    unsigned char tail[16] = {0};
    if (left) {
        memcpy(tail, p, left);
        h = fold(load64(tail) ^ k2 ^ h, load64(tail + 8) ^ k1);
    }
    return hash_u64(h);
}

enum { CRC32C_POLYNOMIAL = (int)0x82f63b78 };

static uint32_t crc_table[8][256];

__attribute__((constructor)) static void make_crc_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? c >> 1 ^ (uint32_t)CRC32C_POLYNOMIAL : c >> 1;
        crc_table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            crc_table[k][i] = crc_table[k - 1][i] >> 8 ^ crc_table[0][crc_table[k - 1][i] & 255];
}

static uint32_t crc_software(uint32_t crc, const unsigned char *p, size_t size)
{
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t v = load64(p) ^ crc; // little-endian, like all supported machines
        crc = 0;
        for (int k = 0; k < 8; k++)
            crc ^= crc_table[7 - k][v >> 8 * k & 255];
    }
    for (; size; size--, p++)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *p) & 255];
    return crc;
}

#if defined(__x86_64__)
// Since clang 14, sse4.2 does not include it; gcc and older clang do not know it.
#if defined(__clang__) && __clang_major__ >= 14
#define CRC_TARGET "sse4.2,crc32"
#else
#define CRC_TARGET "sse4.2"
#endif
__attribute__((target(CRC_TARGET))) static uint32_t crc_hardware(uint32_t crc,
                                                                 const unsigned char *p,
                                                                 size_t size)
{
    uint64_t c = crc;
    for (; size >= 8; size -= 8, p += 8)
        c = _mm_crc32_u64(c, load64(p));
    for (; size; size--, p++)
        c = _mm_crc32_u8((uint32_t)c, *p);
    return (uint32_t)c;
}

// An instruction waits three cycles for the previous one, but a processor starts one every cycle.
// So three lanes of the data are computed at the same time:
//
//     +--------+--------+--------+
//     | lane a | lane b | lane c |     crc = skip(a, 2 lanes) ^ skip(b, 1 lane) ^ c
//     +--------+--------+--------+
//
// skip() is the register after so many zero bytes: multiplied by x^(8 * bytes) modulo the
// polynomial. One carry-less multiplication and one more instruction do that.
enum { LANE_BYTES = 1024, LANES = 3 };
static const uint32_t skip_lane = 0x170076fa, skip_two_lanes = 0xa51b6135;

__attribute__((target(CRC_TARGET ",pclmul"))) static uint64_t skip(uint64_t crc, uint32_t by)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi64_si128((int64_t)by), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target(CRC_TARGET ",pclmul"))) static uint32_t crc_lanes(uint32_t crc,
                                                                        const unsigned char *p,
                                                                        size_t size)
{
    for (; size >= LANES * LANE_BYTES; size -= LANES * LANE_BYTES, p += LANES * LANE_BYTES) {
        uint64_t a = crc, b = 0, c = 0;
        for (size_t i = 0; i < LANE_BYTES; i += 8) {
            a = _mm_crc32_u64(a, load64(p + i));
            b = _mm_crc32_u64(b, load64(p + LANE_BYTES + i));
            c = _mm_crc32_u64(c, load64(p + 2 * LANE_BYTES + i));
        }
        crc = (uint32_t)(skip(a, skip_two_lanes) ^ skip(b, skip_lane) ^ c);
    }
    return crc_hardware(crc, p, size);
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~(__builtin_cpu_supports("pclmul") ? crc_lanes(crc, data, size)
                                                  : crc_hardware(crc, data, size));
#endif
    return ~crc_software(crc, data, size);
}
