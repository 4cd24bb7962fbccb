// unpack.h - unpacks frames of zstd.
#ifndef SONDE_STORE_UNPACK_H
#define SONDE_STORE_UNPACK_H

#include <stddef.h>
#include <stdint.h>

// Unpacks a frame of exactly `size` bytes into `out`. Returns 0, -ENOMEM, or -EBADMSG for a damaged
// frame. Thread-safe.
int unpack(uint8_t *out, size_t size, const uint8_t *frame, size_t frame_size);

#endif
