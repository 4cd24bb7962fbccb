// gpu_backend.c - the backends of a vendor's GPUs (gpu_backend.h): the list of vendors, the choice
// of a backend on this node, and the code that all backends share: values by row, libraries opened
// at run time.
#include "collect/gpu_backend.h"
#include "base/str.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOL_MAX = 64 };

const struct gpu_vendor gpu_vendors[GPU_MAKES] = {
    [GPU_NVIDIA] = {"NVIDIA", "nvidia", {&gpu_nvml}},
    [GPU_AMD] = {"AMD", "amd", {&gpu_rocm_smi, &gpu_sysfs_amd}},
    [GPU_INTEL] = {"Intel", "intel", {&gpu_level_zero, &gpu_sysfs_intel}},
};

const struct gpu_backend *gpu_find_backend(const struct gpu_vendor *vendor, const char *root,
                                           void **library, unsigned *count, char why[GPU_WHY_MAX])
{
    size_t used = 0;
    why[0] = 0;
    for (int i = 0; i < GPU_BACKENDS_MAX && vendor->ways[i]; i++) {
        char wrong[GPU_WORDS_MAX] = "";
        *count = 0;
        *library = NULL;
        if (vendor->ways[i]->start(root, library, count, wrong)) {
            why[0] = 0;
            return vendor->ways[i];
        }
        int size = snprintf(why + used, GPU_WHY_MAX - used, "%s%s", used ? "; " : "", wrong);
        used += (size_t)size < GPU_WHY_MAX - used ? (size_t)size : 0;
    }
    *count = 0;
    return NULL;
}

// ---- values ----

void gpu_offer(struct gpu_device *d, enum metric_symbol first, enum metric_symbol last,
               bool offered)
{
    for (enum metric_symbol row = first; row <= last; row++)
        d->off[row - GPU_ROW_FIRST] = !offered;
}

void gpu_put_memory(struct gpu_device *d, double total, double used)
{
    gpu_put(d, METRIC_GPU_MEMORY_TOTAL, total);
    gpu_put(d, METRIC_GPU_MEMORY_USED, used);
    if (total > 0 && used >= 0 && used <= total)
        gpu_put(d, METRIC_GPU_MEMORY_USED_PERCENT, 100 * used / total);
}

// ---- libraries ----

const char *gpu_library_name(const char *variable, const char *name, const char *root,
                             char why[GPU_WORDS_MAX])
{
    const char *wanted = getenv(variable);
    if (wanted || !root[0])
        return wanted ? wanted : name;
    snprintf(why, GPU_WORDS_MAX, "there are no libraries in another root folder");
    return NULL;
}

void *gpu_library(const char *name, const struct gpu_symbol *symbols, size_t count, void *functions,
                  char why[GPU_WORDS_MAX])
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *wrong = dlerror();
        snprintf(why, GPU_WORDS_MAX, "%s", wrong ? wrong : "the library cannot be opened");
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        struct str rest = str_of(symbols[i].names);
        void *found = NULL;
        for (struct str symbol = str_word(&rest); symbol.size && !found; symbol = str_word(&rest)) {
            char text[SYMBOL_MAX];
            snprintf(text, sizeof text, "%.*s", STR_ARG(symbol));
            found = dlsym(library, text);
        }
        memcpy((char *)functions + symbols[i].offset, &found, sizeof found);
    }
    return library;
}
