// collectors.h - commands that are asked for while the job runs: the functions of a user's
// CollectorGroup, one process each, or one for each GPU.
//
// They come and go by lines (wire/collector_line.h) on the agent's control descriptor, and run as
// scripts do (scripts.h). A process of a GPU finds SONDE_GPU (the index, as the tag `gpu` has it)
// and the variable of the GPU's make: CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or
// ZE_AFFINITY_MASK. Which GPUs there are is asked when the first such collector comes; a driver
// that does not answer delays only these.
//
// In the thread of the event loop.
#ifndef SONDE_AGENT_COLLECTORS_H
#define SONDE_AGENT_COLLECTORS_H

#include "agent/scripts.h"

// Takes what stands behind the verb apart. spec's texts but its name lie in `line`; it has no
// variables yet. -EINVAL with words.
int collector_parse(const char *line, struct script_spec *spec, bool *per_gpu, struct error *e);

struct collectors;

// `scripts` outlives it. NULL: no memory.
struct collectors *collectors_create(uv_loop_t *loop, struct scripts *scripts);

// Takes pieces of what comes on the control descriptor. Lines that are none of collectors are left
// alone; what is wrong with one is said in the log.
void collectors_feed(struct collectors *c, struct str piece);

// Waits for no list of GPUs any more. The processes are scripts_finish's. Run the loop until it is
// empty before collectors_destroy. NULL is allowed for both.
void collectors_finish(struct collectors *c);
void collectors_destroy(struct collectors *c);

#endif
