// parameters.h - the parameters of a run: the values that its programs recorded with sonde_config,
// sonde.config and `sonde put --parameters`.
//
// In a recording they are annotations with the tag sonde=config and the text "KEY=VALUE KEY=VALUE
// …" (src/emit/parameters.c). The end of a run puts them into its description, as members of
// "about":
//
//   "config": { "lr": "0.01", "model.layers": "12" }, "config_lost": 3
#ifndef SONDE_LAUNCH_PARAMETERS_H
#define SONDE_LAUNCH_PARAMETERS_H

#include "store/store.h"

#include <jansson.h>

#define PARAMETERS_TAG "sonde=config"

enum {
    PARAMETERS_MAX = 1024,
    PARAMETERS_BYTES = 64 * 1024, // of all keys and values
    PARAMETERS_KEY_MAX = 128,
    PARAMETERS_VALUE_MAX = 1024,
};

// Zero-initialise it; free it with parameters_free.
struct parameters {
    json_t *values; // KEY: VALUE
    json_t *times;  // KEY: time in ns of the annotation with that VALUE
    size_t bytes;
    uint64_t lost; // pairs that are not in `values`: beyond a limit, or malformed
};
void parameters_free(struct parameters *p);

// Adds the parameters of an annotation; ignores other events. The latest value of a key counts, in
// any order of calls; at equal times, the later call wins.
void parameters_add_event(struct parameters *p, const struct store_event *event);

// Adds the parameters of each recording in the folder; skips unreadable files.
void parameters_add_folder(struct parameters *p, const char *folder);

// Sets "config" and "config_lost" of `about`; leaves it unchanged without parameters.
void parameters_describe(const struct parameters *p, json_t *about);

#endif
