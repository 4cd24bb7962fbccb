#include "base/lazy_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

int lazy_library_load(const char *file, const struct lazy_function *functions, size_t count,
                      struct error *e)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(e, -ELIBACC, "cannot load a library: %s", dlerror());
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            return error_set(e, -ELIBACC, "%s has no function %s", file, functions[i].name);
        memcpy(functions[i].to, &function, sizeof function);
    }
    return 0;
}
