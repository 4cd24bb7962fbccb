// collectors.h - commands that the user starts while the job runs: the functions of a
// CollectorGroup. Each has one process, or one for each GPU.
//
// Lines on the agent's control descriptor start and stop them (wire/collector_line.h). They run
// like scripts (scripts.h). The process of a GPU has SONDE_GPU in its environment (the same index
// as in the tag `gpu`), and the variable of the GPU's make: CUDA_VISIBLE_DEVICES,
// ROCR_VISIBLE_DEVICES or ZE_AFFINITY_MASK. The first such collector starts the lookup of the GPUs.
// So if a driver hangs, it delays only these collectors.
//
// Call all functions in the thread of the event loop.
#ifndef SONDE_AGENT_COLLECTORS_H
#define SONDE_AGENT_COLLECTORS_H

#include "agent/scripts.h"

// Parses a line without its first word, "collector". All texts of `spec` except its name are views
// of `line`; `spec` has no variables yet. Returns 0, or -EINVAL with a message.
int collector_parse(const char *line, struct script_spec *spec, bool *per_gpu, struct error *e);

struct collectors;

// `scripts` must outlive the result. Returns NULL if memory is exhausted.
struct collectors *collectors_create(uv_loop_t *loop, struct scripts *scripts);

// Takes a line of the control descriptor, without its verb. Logs a malformed one.
void collectors_take(struct collectors *c, struct str line);

// Stops waiting for the list of GPUs. scripts_finish ends the processes. Run the loop until it is
// empty before collectors_destroy. NULL is allowed for both.
void collectors_finish(struct collectors *c);
void collectors_destroy(struct collectors *c);

#endif
