// hex.h - bytes as lower-case hexadecimal digits.
#ifndef SONDE_BASE_HEX_H
#define SONDE_BASE_HEX_H

#include <stddef.h>

// Writes 2 × size digits and a NUL to `out`.
void hex_write(const void *bytes, size_t size, char *out);

#endif
