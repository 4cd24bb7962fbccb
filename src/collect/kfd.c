// kfd.c - finds the processes that compute on an AMD GPU:
//
//   /sys/class/kfd/kfd/topology/nodes/2/gpu_id       56789; 0 = a processor
//                                       properties   its PCI address in numbers: lines
//                                                    "location_id 49408", "domain 0"
//                     /proc/4711/vram_56789          bytes of that GPU's memory that process 4711
//                                                    holds
//
// Each process that has opened kfd has a file for every GPU; processes that hold no memory are not
// counted.
#include "collect/kfd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    NODES_MAX = 256,
    PROCESSES_MAX = 4096,
    PATH_SIZE = 1024,
    PROPERTIES_SIZE = 4096,
    NAME_SIZE = 300
};

struct kfd {
    DIR *processes;
    uint64_t gpu_id;
};

static size_t read_file(int folder, const char *path, char *out, size_t size)
{
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd >= 0 ? pread(fd, out, size, 0) : -1;
    if (fd >= 0)
        close(fd);
    return got > 0 ? (size_t)got : 0;
}

static bool read_number(int folder, const char *path, uint64_t *out)
{
    char text[32];
    struct str whole = {text, read_file(folder, path, text, sizeof text)};
    return str_to_u64(str_cut(&whole, '\n'), out);
}

// Reads the lines' numbers by name; leaves the number of a missing name unchanged.
static void read_properties(int folder, const char *path, uint64_t *location, uint64_t *domain)
{
    char text[PROPERTIES_SIZE];
    struct str rest = {text, read_file(folder, path, text, sizeof text)};
    while (rest.size) {
        struct str line = str_cut(&rest, '\n');
        struct str name = str_word(&line), value = str_word(&line);
        if (str_eq(name, STR("location_id")))
            str_to_u64(value, location);
        else if (str_eq(name, STR("domain")))
            str_to_u64(value, domain);
    }
}

static uint64_t find_gpu(int nodes, uint64_t location, uint64_t domain)
{
    for (int number = 0; number < NODES_MAX; number++) {
        char path[64];
        uint64_t id, its_location = UINT64_MAX, its_domain = 0; // older kernels give no domain
        snprintf(path, sizeof path, "%d/gpu_id", number);
        if (!read_number(nodes, path, &id) || id == 0)
            continue;
        snprintf(path, sizeof path, "%d/properties", number);
        read_properties(nodes, path, &its_location, &its_domain);
        if (its_location == location && its_domain == domain)
            return id;
    }
    return 0;
}

struct kfd *kfd_open(const char *root, const char *address)
{
    char path[PATH_SIZE];
    unsigned domain, bus, device, function;
    if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
        return NULL;
    snprintf(path, sizeof path, "%s/sys/class/kfd/kfd/topology/nodes", root);
    int nodes = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (nodes < 0)
        return NULL;
    uint64_t id = find_gpu(nodes, bus << 8 | device << 3 | function, domain);
    close(nodes);
    snprintf(path, sizeof path, "%s/sys/class/kfd/kfd/proc", root);
    DIR *processes = id ? opendir(path) : NULL;
    struct kfd *kfd = processes ? calloc(1, sizeof *kfd) : NULL;
    if (kfd)
        *kfd = (struct kfd){processes, id};
    else if (processes)
        closedir(processes);
    return kfd;
}

void kfd_close(struct kfd *kfd)
{
    if (kfd)
        closedir(kfd->processes);
    free(kfd);
}

void kfd_fill(struct kfd *kfd, struct gpu_device *d)
{
    size_t count = 0;
    double bytes = 0;
    rewinddir(kfd->processes);
    for (struct dirent *entry; count < PROCESSES_MAX && (entry = readdir(kfd->processes));) {
        char path[NAME_SIZE];
        uint64_t held;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "%s/vram_%llu", entry->d_name, (unsigned long long)kfd->gpu_id);
        if (!read_number(dirfd(kfd->processes), path, &held) || held == 0)
            continue;
        count++;
        bytes += (double)held;
    }
    gpu_put(d, METRIC_GPU_PROCESSES, (double)count);
    gpu_put(d, METRIC_GPU_PROCESS_MEMORY, bytes);
}
