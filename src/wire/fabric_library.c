// fabric_library.c - opens libfabric with dlopen, as sonde opens the libraries of GPUs. So the
// program, packages and agent do not depend on it, and a node without the library still runs.
#include "wire/fabric_library.h"
#include "wire/fabric.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The interface version that we request: old enough for every libfabric of recent years, new enough
// for the bits of mr_mode.
#define FABRIC_API FI_VERSION(1, 9)

// Networks that move data by themselves, best first.
static const char *const made_for_it[] = {"cxi", "efa", "opx", "psm3", "verbs;ofi_rxm"};
// Networks to use if the machine has none of the above and the user requests libfabric.
static const char *const others[] = {"tcp;ofi_rxm", "tcp"};

// ---- the library ----

static struct fabric_library library;
static struct error opening; // result of opening the library; code 0: it is open
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_it(void)
{
    static const struct {
        const char *name;
        void *to;
    } names[] = {{"fi_getinfo", &library.getinfo},   {"fi_freeinfo", &library.freeinfo},
                 {"fi_dupinfo", &library.dupinfo},   {"fi_fabric", &library.fabric},
                 {"fi_strerror", &library.strerror}, {"fi_version", &library.version}};
    // libfabric's cache of registered memory watches malloc or page faults of the whole process;
    // our two blocks live as long as the endpoint and need no cache.
    setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
    // We use no GPU memory, so libfabric must not start GPU libraries (1.18 and newer heed this).
    setenv("FI_HMEM", "system", 0);
    void *handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        error_set(&opening, -ENOENT,
                  "libfabric cannot be opened: %s; install it (Debian: libfabric1)", dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *symbol = dlsym(handle, names[i].name);
        if (!symbol) {
            error_set(&opening, -ENOENT, "this libfabric has no %s", names[i].name);
            return;
        }
        memcpy(names[i].to, &symbol, sizeof symbol);
    }
    if (FI_VERSION_LT(library.version(), FABRIC_API))
        error_set(&opening, -ENOENT, "this libfabric is older than 1.9");
}

const struct fabric_library *fabric_library_open(struct error *e)
{
    pthread_once(&once, open_it);
    if (!opening.code)
        return &library;
    error_set(e, opening.code, "%s", opening.text);
    return NULL;
}

// ---- signals ----

enum { SIGNALS = 32 }; // number of the standard signals

struct fabric_signals {
    struct sigaction before[SIGNALS];
};

struct fabric_signals *fabric_signals_keep(void)
{
    struct fabric_signals *s = calloc(1, sizeof *s);
    for (int i = 1; s && i < SIGNALS; i++)
        sigaction(i, NULL, &s->before[i]);
    return s;
}

void fabric_signals_restore(struct fabric_signals *s)
{
    for (int i = 1; s && i < SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(i, NULL, &now) == 0 && now.sa_handler != s->before[i].sa_handler)
            sigaction(i, &s->before[i], NULL);
    }
    free(s);
}

// ---- providers ----

bool fabric_hardware(void)
{
    // Folders of RDMA devices of every vendor (also EFA's and Omni-Path's), and of Slingshot's.
    static const char *const folders[] = {"/sys/class/infiniband", "/sys/class/cxi"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        DIR *d = opendir(folders[i]);
        struct dirent *entry = NULL;
        while (d && (entry = readdir(d)) && entry->d_name[0] == '.')
            ;
        if (d)
            closedir(d);
        if (entry)
            return true;
    }
    return false;
}

static struct fi_info *hints_for(const char *provider)
{
    struct fi_info *h = library.dupinfo(NULL);
    if (!h)
        return NULL;
    // We need only remote reads (FI_RMA). Some providers implement them with messages (FI_MSG).
    h->caps = FI_MSG | FI_RMA;
    h->mode = FI_CONTEXT | FI_CONTEXT2;
    h->ep_attr->type = FI_EP_RDM;
    h->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    h->domain_attr->threading = FI_THREAD_DOMAIN; // only the loop's thread uses the domain
    h->domain_attr->control_progress = h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    h->domain_attr->resource_mgmt = FI_RM_ENABLED;
    h->fabric_attr->prov_name = strdup(provider);
    return h;
}

static int look_for(const char *provider, enum wire_side side, const char *near,
                    struct fi_info **out)
{
    struct fi_info *hints = hints_for(provider);
    if (!hints || !hints->fabric_attr->prov_name) {
        if (hints)
            library.freeinfo(hints);
        return -FI_ENOMEM;
    }
    // A hub reads from its listening address. The hub reads a link's memory at the address from
    // which the link reaches its parent. A provider whose addresses are not numeric would take
    // `near` for a name in its own format.
    int r =
        near ? library.getinfo(FABRIC_API, near, NULL, side == WIRE_HUB ? FI_SOURCE : 0, hints, out)
             : -FI_ENODATA;
    bool named = r == 0 && (*out)->addr_format == FI_ADDR_STR;
    if (named)
        library.freeinfo(*out);
    if (r || named)
        r = library.getinfo(FABRIC_API, NULL, NULL, 0, hints, out);
    library.freeinfo(hints);
    if (r == 0 && (*out)->ep_attr->max_msg_size < WIRE_LAID_MAX) {
        library.freeinfo(*out);
        r = -FI_ENODATA;
    }
    return r;
}

int fabric_choose(const struct fabric_library *l, const char *provider, bool only_made_for_it,
                  enum wire_side side, const char *near, struct fi_info **out, struct error *e)
{
    *out = NULL;
    if (provider) {
        int r = look_for(provider, side, near, out);
        return r == 0 ? 0
                      : error_set(e, -ENODEV,
                                  "libfabric's provider %s cannot be used here: %s (fi_info shows "
                                  "what is there)",
                                  provider, l->strerror(-r));
    }
    for (size_t i = 0; i < sizeof made_for_it / sizeof made_for_it[0]; i++)
        if (look_for(made_for_it[i], side, near, out) == 0)
            return 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0] && !only_made_for_it; i++)
        if (look_for(others[i], side, near, out) == 0)
            return 0;
    return error_set(e, -ENODEV, "libfabric finds no network here that it can use");
}

bool fabric_describe(char *out, size_t size)
{
    struct error e;
    struct fi_info *info = NULL;
    const struct fabric_library *l = fabric_library_open(&e);
    if (!l) {
        snprintf(out, size, "%s: data of other nodes come over TCP", e.text);
        return false;
    }
    unsigned version = l->version();
    struct fabric_signals *signals = fabric_signals_keep();
    bool found = fabric_choose(l, NULL, true, WIRE_LINK, NULL, &info, &e) == 0;
    fabric_signals_restore(signals);
    if (found)
        snprintf(out, size, "libfabric %u.%u with %s on %s: data of other nodes come over it",
                 FI_MAJOR(version), FI_MINOR(version), info->fabric_attr->prov_name,
                 info->domain_attr->name);
    else
        snprintf(out, size,
                 "libfabric %u.%u finds no network made for it: data of other nodes come over TCP",
                 FI_MAJOR(version), FI_MINOR(version));
    if (info)
        l->freeinfo(info);
    return found;
}
