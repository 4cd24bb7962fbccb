#include "launch/allocation.h"

#include "launch/folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// ---------------------------------------------------------------- this machine

static bool is_our_address(const char *text)
{
    struct ifaddrs *list;
    if (getifaddrs(&list) < 0)
        return false;
    bool ours = false;
    for (const struct ifaddrs *i = list; i && !ours; i = i->ifa_next) {
        char address[INET6_ADDRSTRLEN] = "";
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (family == AF_INET)
            inet_ntop(family, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr,
                      address, sizeof address);
        else if (family == AF_INET6)
            inet_ntop(family, &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr,
                      address, sizeof address);
        ours = strcmp(address, text) == 0;
    }
    freeifaddrs(list);
    return ours;
}

bool allocation_is_here(const char *name)
{
    // Slurm's name for this node may differ from the node's own name.
    const char *slurm = getenv("SLURMD_NODENAME");
    if (slurm && strcmp(slurm, name) == 0)
        return true;
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, name, &v4) == 1 || inet_pton(AF_INET6, name, &v6) == 1)
        return is_our_address(name);
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) < 0)
        return false;
    if (strcmp(name, "localhost") == 0 || str_eq_nocase(str_of(name), str_of(own)))
        return true;
    // "n1" and "n1.domain" are the same host; names with two different domains are not.
    bool both = strchr(own, '.') && strchr(name, '.');
    struct str a = {own, strcspn(own, ".")}, b = {name, strcspn(name, ".")};
    return !both && str_eq_nocase(a, b);
}

// Moves this machine to the front.
static void put_here_first(struct allocation *a)
{
    struct hosts *h = &a->hosts;
    for (size_t i = 0; i < h->count && !a->here; i++) {
        if (!allocation_is_here(h->names[i]))
            continue;
        a->here = true;
        char *name = h->names[i];
        memmove(h->names + 1, h->names, i * sizeof *h->names);
        h->names[0] = name;
    }
    for (size_t i = 0; i < h->count; i++)
        *map_get(&h->known, str_of(h->names[i])) = i;
}

// ---------------------------------------------------------------- sources of the list

int allocation_read_hostfile(const char *path, struct hosts *out, struct error *e)
{
    char whole[FOLDER_PATH_MAX]; // the file's real path, because the given one may be a link
    if (!realpath(path, whole))
        return error_set(e, -errno, "cannot read %s: %s", path, strerror(errno));
    struct buf text;
    int status = folder_read(whole, HOSTLIST_BYTES_MAX, &text, e);
    if (status < 0)
        return status;
    struct str rest = buf_str(&text);
    int line_number = 0;
    while (status == 0 && rest.data) {
        struct str line = str_cut(&rest, '\n');
        line_number++;
        line = str_cut(&line, '#');
        line = str_trim(line);
        struct str name = str_word(&line);
        if (name.size == 0)
            continue;
        // "n1:4" means four slots, but more than one colon is an IPv6 address.
        ptrdiff_t colon = str_find_char(name, ':');
        if (colon > 0 && str_find_char(str_slice(name, (size_t)colon + 1, name.size), ':') < 0)
            name = str_slice(name, 0, (size_t)colon);
        status = hosts_add(out, name, e);
        if (status < 0)
            error_prefix(e, "%s, line %d", path, line_number);
    }
    buf_free(&text);
    if (status == 0 && out->count == 0)
        return error_set(e, -EINVAL, "%s names no hosts", path);
    return status;
}

int allocation_find(const char *hosts, const char *hostfile, struct allocation *out,
                    struct error *e)
{
    *out = (struct allocation){0};
    const char *slurm = getenv("SLURM_JOB_NODELIST"), *pbs = getenv("PBS_NODEFILE");
    int status = 0;
    if (hosts && hostfile) {
        return error_set(e, -EINVAL, "--hosts and --hostfile contradict each other");
    } else if (hosts) {
        out->kind = ALLOCATION_SSH;
        status = hostlist_parse(str_of(hosts), &out->hosts, e);
        if (status < 0)
            error_prefix(e, "--hosts");
    } else if (hostfile) {
        out->kind = ALLOCATION_SSH;
        status = allocation_read_hostfile(hostfile, &out->hosts, e);
        if (status < 0)
            error_prefix(e, "--hostfile");
    } else if (slurm && *slurm) {
        out->kind = ALLOCATION_SLURM;
        status = hostlist_parse(str_of(slurm), &out->hosts, e);
        if (status < 0)
            error_prefix(e, "SLURM_JOB_NODELIST");
    } else if (pbs && *pbs) {
        out->kind = ALLOCATION_PBS;
        status = allocation_read_hostfile(pbs, &out->hosts, e);
        if (status < 0)
            error_prefix(e, "PBS_NODEFILE");
    } else {
        out->here = true;
        return 0;
    }
    if (status < 0) {
        allocation_free(out);
        return status;
    }
    put_here_first(out);
    return 0;
}

void allocation_free(struct allocation *a)
{
    hosts_free(&a->hosts);
    *a = (struct allocation){0};
}

// ---------------------------------------------------------------- copies

static long variable(const char *name, long otherwise)
{
    int64_t value;
    const char *text = getenv(name);
    return text && str_to_i64(str_of(text), &value) && value >= 0 && value <= INT32_MAX
               ? (long)value
               : otherwise;
}

int allocation_copies(long *rank)
{
    // Slurm starts copies in a step of several tasks. A batch script has no step, or one with a
    // single task, but has SLURM_PROCID, too.
    static const struct {
        const char *size, *rank;
    } starters[] = {
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, // Open MPI
        {"PMI_SIZE", "PMI_RANK"},                         // set by MPICH, Intel MPI, Cray PALS
        {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},   // MVAPICH
        {"PALS_SIZE", "PALS_RANKID"},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    };
    for (size_t i = 0; i < sizeof starters / sizeof starters[0]; i++) {
        long size = variable(starters[i].size, 0);
        if (size > 1) {
            *rank = variable(starters[i].rank, 0);
            return (int)size;
        }
    }
    return 0;
}
