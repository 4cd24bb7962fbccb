// Shortens the name of a kernel, which a program can choose: the result is a text of the name's
// characters, of limited size.
#include "trace/kernel_name.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char out[KERNEL_NAME_BYTES], *name = malloc(size + 1);
    if (!name)
        return 0;
    memcpy(name, data, size);
    name[size] = 0;
    memset(out, 'x', sizeof out);
    kernel_name_write(name, out);
    size_t length = strnlen(out, sizeof out);
    if (length == sizeof out || (name[0] && !length))
        abort();
    for (size_t i = 0; i < length; i++)
        if (!strchr(name, out[i]) && !strchr("<:>", out[i]))
            abort();
    free(name);
    return 0;
}
