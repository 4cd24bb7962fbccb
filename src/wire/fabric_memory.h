// fabric_memory.h - names libfabric's shared memory, and removes the files of killed processes. For
// fabric_library.c and fabric.c.
//
// The provider shm keeps 16 MiB of each endpoint in a file under /dev/shm and removes it with the
// endpoint. By default the file's name contains the process id. But each container counts processes
// from 1. If containers share the folder, one of them may take a file of another container for the
// file of a dead process. So we choose the name: "sonde-" and 64 random bits.
//
// A process killed with -9 leaves its file. A file that no process has mapped for writing is stale.
// The kernel detects that: it grants a lease (fcntl(2), F_SETLEASE) only if no process, in any
// namespace, has the file open or mapped for writing.
#ifndef SONDE_WIRE_FABRIC_MEMORY_H
#define SONDE_WIRE_FABRIC_MEMORY_H

#define FABRIC_MEMORY_PROVIDER "shm"
#define FABRIC_MEMORY_FOLDER "/dev/shm"

enum { FABRIC_MEMORY_NAME = 32 }; // "sonde://sonde-", 16 digits and a NUL

// Makes a unique address in the provider's format. Returns a negative errno on failure.
int fabric_memory_name(char out[FABRIC_MEMORY_NAME]);

// Removes this user's stale files with such names. A file that cannot be removed stays.
void fabric_memory_sweep(const char *folder);

#endif
