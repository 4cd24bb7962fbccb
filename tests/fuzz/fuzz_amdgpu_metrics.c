// Parses random bytes as a table of an amdgpu driver. The parser must not read behind the end of
// the table, and must not make up a value.
#include "collect/gpu_sysfs.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gpu_device d;
    uint8_t *table = malloc(size); // of the exact size, so that the sanitizer sees reads beyond it
    for (int row = 0; row < GPU_ROWS; row++)
        d.values[row] = store_missing();
    if (size)
        memcpy(table, data, size);
    bool known = amdgpu_metrics_fill(table, size, &d);
    for (int row = 0; row < GPU_ROWS; row++)
        if (!store_is_missing(d.values[row]) &&
            (!known || !isfinite(d.values[row]) || d.values[row] < 0))
            abort();
    free(table);
    return 0;
}
