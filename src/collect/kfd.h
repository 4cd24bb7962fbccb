// kfd.h - the processes that compute on an AMD GPU, from the compute part of its driver (kfd) in
// /sys. It needs no privileges and covers the processes of all users.
#ifndef SONDE_COLLECT_KFD_H
#define SONDE_COLLECT_KFD_H

#include "collect/gpu_backend.h"

struct kfd;

// Opens the GPU at a PCI address ("0000:c1:00.0"). Returns NULL if kfd does not know it.
struct kfd *kfd_open(const char *root, const char *address);
void kfd_close(struct kfd *kfd); // NULL is allowed

// Puts the number of the GPU's processes and the GPU memory that they hold.
void kfd_fill(struct kfd *kfd, struct gpu_device *d);

#endif
