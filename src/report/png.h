// png.h - small pictures with a palette: a colour for each cell of a heat map.
#ifndef SONDE_REPORT_PNG_H
#define SONDE_REPORT_PNG_H

#include "base/str.h"

#include <stdint.h>

enum { PNG_COLOURS = 64, PNG_MISSING = PNG_COLOURS }; // the last one is transparent

// The colour of a value between 0 and 1 (others count as the nearest of them); NaN: missing.
uint8_t png_colour(double value);
// The colour as 0xRRGGBB.
uint32_t png_rgb(uint8_t colour);

// The picture, in base64. Sets out->failed if memory is out.
void png_write_base64(const uint8_t *pixels, size_t width, size_t height, struct buf *out);

#endif
