// png.h - small pictures with a palette, for heat maps: one pixel for each cell.
#ifndef SONDE_REPORT_PNG_H
#define SONDE_REPORT_PNG_H

#include "base/str.h"

#include <stdint.h>

enum { PNG_COLOURS = 64, PNG_MISSING = PNG_COLOURS }; // the last colour is transparent

// Returns the colour of a value, which is clamped to 0 … 1; NaN: missing.
uint8_t png_colour(double value);
// Returns the colour as 0xRRGGBB.
uint32_t png_rgb(uint8_t colour);

// Writes the picture in base64. Sets out->failed if memory is exhausted.
void png_write_base64(const uint8_t *pixels, size_t width, size_t height, struct buf *out);

#endif
