// Loads the library of NVTX_INJECTION64_PATH as NVTX does, and calls its functions as programs do,
// and as they do not. Without the variable, only prints the same.
#include "trace/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 16 };

static nvtx_function core[SIZE], domains[SIZE];
static nvtx_function *core_table[SIZE], *domains_table[SIZE];

static int get_table(int module, nvtx_function ***table, unsigned *size)
{
    *table = module == NVTX_MODULE_CORE ? core_table : domains_table;
    *size = SIZE;
    return module == NVTX_MODULE_CORE || module == NVTX_MODULE_DOMAINS;
}

static const struct nvtx_callbacks callbacks = {sizeof callbacks, get_table};

static const void *table_of(uint32_t number)
{
    return number == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

typedef int push_text(const char *), push_wide(const wchar_t *), pop_core(void), pop_in(void *);
typedef int push_in(void *, const struct nvtx_attributes *);
typedef uint64_t start_text(const char *);
typedef void stop_core(uint64_t), mark_text(const char *);
typedef void mark_in(void *, const struct nvtx_attributes *);
typedef void *make_text(void *, const char *), *make_domain(const char *);

#define CORE(type, place, ...) ((type *)core[place])(__VA_ARGS__)
#define DOMAIN(type, place, ...) ((type *)domains[place])(__VA_ARGS__)

static void *stop_in_thread(void *id)
{
    CORE(stop_core, NVTX_RANGE_END, *(uint64_t *)id);
    CORE(stop_core, NVTX_RANGE_END, *(uint64_t *)id); // again
    return NULL;
}

static void *push_often(void *unused)
{
    for (int i = 0; i < 300; i++) {
        CORE(push_text, NVTX_RANGE_PUSH_A, "often");
        CORE(pop_core, NVTX_RANGE_POP);
    }
    return unused;
}

static void check(const char *what, int got, int wanted)
{
    if (got != wanted)
        printf("%s returned %d, not %d\n", what, got, wanted);
}

// Names of which every range has another one: numbers of steps and, as PyTorch has them, of
// operations.
static void push_numbered(const char *format, int count)
{
    for (int i = 0; i < count; i++) {
        char text[80];
        snprintf(text, sizeof text, format, i, i * 7, i + 1);
        CORE(push_text, NVTX_RANGE_PUSH_A, text);
        CORE(pop_core, NVTX_RANGE_POP);
    }
}

static int push_all_numbered(void)
{
    push_numbered("aten::mm, seq = %d, op_id = %d, sizes = [[2, %d], []]", 1000);
    push_numbered("step %d", 500);
    push_numbered("layer %d", 12);
    push_numbered("block%d.mlp%d", 300);
    push_numbered("sm90", 5);
    push_numbered("lr=-%d.5e", 3);
    push_numbered("= 9", 1);
    printf("done\n");
    return 0;
}

static void *add_domains(void *end)
{
    while (!atomic_load((_Atomic bool *)end))
        DOMAIN(make_domain, NVTX_DOMAIN_CREATE_A, "of a thread");
    return NULL;
}

// Forks while another thread nearly always holds the lock of domains.
static int fork_while_domains_are_added(void)
{
    _Atomic bool end = false;
    pthread_t thread;
    int ended = 0;
    if (pthread_create(&thread, NULL, add_domains, &end) != 0)
        return 1;
    for (int i = 0; i < 200; i++) {
        int status = 1;
        pid_t child = fork();
        if (child == 0) {
            alarm(20); // ends a child that waits for the lock forever
            DOMAIN(make_domain, NVTX_DOMAIN_CREATE_A, "of a child");
            _exit(0);
        }
        ended += waitpid(child, &status, 0) == child && status == 0;
        if (status != 0)
            break;
    }
    atomic_store(&end, true);
    pthread_join(thread, NULL);
    printf("%d children ended\n", ended);
    return 0;
}

int main(int argc, char **argv)
{
    const char *file = getenv("NVTX_INJECTION64_PATH");
    void *library = file ? dlopen(file, RTLD_LAZY) : NULL;
    int (*initialize)(nvtx_get_table *) = NULL;
    for (unsigned i = 0; i < SIZE; i++) {
        core_table[i] = &core[i];
        domains_table[i] = &domains[i];
    }
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    if (!initialize || !initialize(table_of)) {
        printf("off\n");
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "numbered") == 0)
        return push_all_numbered();
    if (argc > 1 && strcmp(argv[1], "forks") == 0)
        return fork_while_domains_are_added();
    initialize(table_of); // as a second library with NVTX does
    check("an odd pop", CORE(pop_core, NVTX_RANGE_POP), -1);
    check("outer", CORE(push_text, NVTX_RANGE_PUSH_A, "outer"), 0);
    check("inner", CORE(push_wide, NVTX_RANGE_PUSH_W, L"inner é€\U0001f600"), 1);
    void *physics = DOMAIN(make_domain, NVTX_DOMAIN_CREATE_A, "physics");
    check("a domain", physics == DOMAIN(make_domain, NVTX_DOMAIN_CREATE_A, "physics"), 1);
    struct nvtx_attributes a = {.version = 3, .size = sizeof a, .text_type = NVTX_TEXT_REGISTERED};
    a.text.registered = DOMAIN(make_text, NVTX_DOMAIN_REGISTER_A, physics, "step");
    check("step", DOMAIN(push_in, NVTX_DOMAIN_RANGE_PUSH, physics, &a), 0);
    // Not the last one that this thread has pushed.
    check("pop inner", CORE(pop_core, NVTX_RANGE_POP), 1);
    DOMAIN(mark_in, NVTX_DOMAIN_MARK, physics, &a);
    check("pop step", DOMAIN(pop_in, NVTX_DOMAIN_RANGE_POP, physics), 0);
    check("pop outer", CORE(pop_core, NVTX_RANGE_POP), 0);
    CORE(mark_text, NVTX_MARK_A, "half");
    a.text.registered = "not registered";
    DOMAIN(push_in, NVTX_DOMAIN_RANGE_PUSH, "no domain", &a);
    DOMAIN(pop_in, NVTX_DOMAIN_RANGE_POP, NULL);
    uint64_t id = CORE(start_text, NVTX_RANGE_START_A, "shared");
    pthread_t thread;
    if (pthread_create(&thread, NULL, stop_in_thread, &id) != 0)
        return 1;
    pthread_join(thread, NULL);
    CORE(stop_core, NVTX_RANGE_END, 0);
    CORE(stop_core, NVTX_RANGE_END, UINT64_MAX);
    uint64_t ids[1100];
    for (size_t i = 0; i < 1100; i++)
        ids[i] = CORE(start_text, NVTX_RANGE_START_A, "many");
    for (size_t i = 0; i < 1100; i++)
        CORE(stop_core, NVTX_RANGE_END, ids[i]);
    for (int i = 0; i < 100; i++)
        check("deep", CORE(push_text, NVTX_RANGE_PUSH_A, "deep"), i);
    for (int i = 100; i--;)
        check("pop deep", CORE(pop_core, NVTX_RANGE_POP), i);
    pthread_t threads[40];
    for (size_t i = 0; i < 40; i++)
        if (pthread_create(&threads[i], NULL, push_often, NULL) != 0)
            return 1;
    for (size_t i = 0; i < 40; i++)
        pthread_join(threads[i], NULL);
    printf("done\n");
    return 0;
}
