#include "base/service.h"

#include "base/descriptors.h"
#include "base/process_memory.h"

void service_prepare(size_t mapped_from_bytes)
{
    process_memory_set_up(mapped_from_bytes);
    descriptors_prepare(DESCRIPTORS_USUAL);
}
