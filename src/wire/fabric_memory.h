// fabric_memory.h - the names of libfabric's shared memory, and what killed processes have left of
// it. For fabric_library.c and fabric.c.
//
// The provider shm keeps 16 MiB of each endpoint in a file under /dev/shm and removes it with the
// endpoint. It would call it after the number of its process: where containers share the folder and
// each counts its processes from 1, one takes the other's file for that of a dead one. So it gets a
// name of ours, "sonde-" and 64 random bits.
//
// Whoever is killed with -9 removes nothing. A file that nobody has mapped for writing is nobody's
// any more; the kernel knows, and says so to who asks for a lease (fcntl(2), F_SETLEASE): of all
// processes, whatever namespace they are in.
#ifndef SONDE_WIRE_FABRIC_MEMORY_H
#define SONDE_WIRE_FABRIC_MEMORY_H

#define FABRIC_MEMORY_PROVIDER "shm"
#define FABRIC_MEMORY_FOLDER "/dev/shm"

enum { FABRIC_MEMORY_NAME = 32 }; // "sonde://sonde-", 16 digits and a 0

// An address that no other endpoint has, as the provider takes it. Negative errno.
int fabric_memory_name(char out[FABRIC_MEMORY_NAME]);

// Removes this user's files of such a name that are nobody's. What cannot be removed stays.
void fabric_memory_sweep(const char *folder);

#endif
