// parameters.h - the parameters of a run: what its programs kept with sonde_config, sonde.config
// and `sonde put --parameters`.
//
// In a recording they are annotations with the tag sonde=config, whose text is "KEY=VALUE KEY=VALUE
// …" (src/emit/parameters.c). At the end of a run they go into its description, as members of
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

// Zero-initialise it; parameters_free when done.
struct parameters {
    json_t *values; // KEY: VALUE
    json_t *times;  // KEY: ns of the annotation that VALUE is from
    size_t bytes;
    uint64_t lost; // words of annotations that are not in `values`: beyond a limit, or malformed
};
void parameters_free(struct parameters *p);

// Takes the parameters of an annotation; other events do nothing. Of one key the latest value
// counts, in any order of calls; of the same instant that of the later call.
void parameters_add_event(struct parameters *p, const struct store_event *event);

// Takes those of each recording in the folder; files that cannot be read are left out.
void parameters_add_folder(struct parameters *p, const char *folder);

// Sets "config" and "config_lost" of `about`; without parameters it stays as it is.
void parameters_describe(const struct parameters *p, json_t *about);

#endif
