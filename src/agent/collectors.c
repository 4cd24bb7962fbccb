#include "agent/collectors.h"

#include "base/log.h"
#include "collect/gpu_list.h"
#include "wire/collector_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIST_SIZE_MAX = GPU_LIST_MAX * 3 * GPU_LIST_LINE_MAX }; // lists of the three makes of GPUs

struct collector {
    char *line; // "NAME …"; NULL: the slot is free
    struct script *scripts[GPU_LIST_MAX];
    size_t count;
    bool waits; // this collector waits for the list of GPUs
};

struct gpu {
    char index[16];
    char variable[GPU_LIST_LINE_MAX];
};

struct collectors {
    uv_loop_t *loop;
    struct scripts *scripts;
    struct collector collectors[COLLECTORS_MAX];

    uv_poll_t list;
    int list_fd; // -1 = no lookup is running
    bool gpus_requested, finishing;
    struct buf listed;
    struct gpu gpus[GPU_LIST_MAX];
    size_t gpu_count;
};

// ---- one collector ----

static void stop(struct collector *c)
{
    for (size_t i = 0; i < c->count; i++)
        scripts_remove(c->scripts[i]);
    free(c->line);
    *c = (struct collector){0};
}

static bool take_word(struct str *rest, struct str key, struct str *value)
{
    struct str behind = *rest, word = str_word(&behind);
    *value = word;
    if (!str_eq(str_cut(value, '='), key))
        return false;
    *rest = behind;
    return true;
}

int collector_parse(const char *line, struct script_spec *spec, bool *per_gpu, struct error *e)
{
    struct str rest = str_of(line), name = str_word(&rest), value, input = {0};
    *per_gpu = take_word(&rest, STR("per_gpu"), &value);
    if (take_word(&rest, STR("input"), &value))
        input = value;
    int failed = script_parse(rest, spec, e);
    if (failed)
        return failed;
    spec->kind = "collector";
    spec->input = input;
    snprintf(spec->name, sizeof spec->name, "%.*s", STR_ARG(name));
    return 0;
}

static void add(struct collectors *all, struct collector *c, const struct script_spec *spec)
{
    struct error e;
    struct script *s = scripts_add(all->scripts, spec, &e);
    if (s)
        c->scripts[c->count++] = s;
    else
        log_warning("%s", e.text);
}

static void start(struct collectors *all, struct collector *c)
{
    struct script_spec spec;
    struct error e;
    bool per_gpu;
    if (collector_parse(c->line, &spec, &per_gpu, &e) != 0) {
        struct str rest = str_of(c->line), name = str_word(&rest);
        log_warning("collector %.*s is left out: %s", STR_ARG(name), e.text);
        stop(c);
        return;
    }
    if (!per_gpu) {
        add(all, c, &spec);
        return;
    }
    c->waits = all->list_fd >= 0;
    if (!c->waits && all->gpu_count == 0)
        log_warning("collector %s is one for each GPU, and there is none here", spec.name);
    for (size_t i = 0; !c->waits && i < all->gpu_count; i++) {
        const struct gpu *gpu = &all->gpus[i];
        char own[sizeof gpu->index + sizeof "SONDE_GPU="];
        snprintf(own, sizeof own, "SONDE_GPU=%s", gpu->index);
        spec.gpu = gpu->index;
        spec.variables[0] = own;
        spec.variables[1] = gpu->variable;
        spec.variable_count = 2;
        add(all, c, &spec);
    }
}

// ---- the list of GPUs ----

static void read_list(struct collectors *all)
{
    struct str rest = buf_str(&all->listed);
    while (rest.data && all->gpu_count < GPU_LIST_MAX) {
        struct str variable = str_cut(&rest, '\n'), index = str_cut(&variable, ' ');
        struct gpu *gpu = &all->gpus[all->gpu_count];
        if (!variable.size)
            continue;
        snprintf(gpu->index, sizeof gpu->index, "%.*s", STR_ARG(index));
        snprintf(gpu->variable, sizeof gpu->variable, "%.*s", STR_ARG(variable));
        all->gpu_count++;
    }
    buf_free(&all->listed);
}

static void close_list(struct collectors *all)
{
    if (all->list_fd < 0)
        return;
    uv_close((uv_handle_t *)&all->list, NULL);
    close(all->list_fd);
    all->list_fd = -1;
}

static void on_list(uv_poll_t *poll, int status, int events)
{
    struct collectors *all = poll->data;
    char piece[GPU_LIST_LINE_MAX];
    (void)status, (void)events;
    ssize_t got = read(all->list_fd, piece, sizeof piece);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        buf_add(&all->listed, piece, (size_t)got);
        return;
    }
    close_list(all);
    read_list(all);
    for (size_t i = 0; i < COLLECTORS_MAX; i++)
        if (all->collectors[i].waits)
            start(all, &all->collectors[i]);
}

// Looks up the GPUs once, on first use.
static void ask_for_gpus(struct collectors *all)
{
    if (all->gpus_requested)
        return;
    all->gpus_requested = true;
    all->listed.limit = LIST_SIZE_MAX;
    int fd = gpu_list_open("");
    int failed = fd < 0 ? fd : uv_poll_init(all->loop, &all->list, fd);
    if (failed) {
        log_warning("cannot ask for the GPUs of this node: %s", strerror(-failed));
        if (fd >= 0)
            close(fd);
        return;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    all->list_fd = fd;
    all->list.data = all;
    uv_poll_start(&all->list, UV_READABLE, on_list);
}

// ---- all collectors ----

static bool is_called(const struct collector *c, struct str name)
{
    struct str rest = str_of(c->line);
    return c->line && str_eq(str_word(&rest), name);
}

void collectors_take(struct collectors *all, struct str line)
{
    struct str rest = line, definition = str_trim(rest), name = str_word(&rest), value;
    if (all->finishing)
        return;
    struct collector *free_one = NULL;
    for (size_t i = 0; i < COLLECTORS_MAX; i++) {
        if (is_called(&all->collectors[i], name))
            stop(&all->collectors[i]);
        if (!free_one && !all->collectors[i].line)
            free_one = &all->collectors[i];
    }
    if (!str_trim(rest).size)
        return;
    if (!free_one || !(free_one->line = strndup(definition.data, definition.size))) {
        log_warning("collector %.*s is left out: there are %d", STR_ARG(name), COLLECTORS_MAX);
        return;
    }
    if (take_word(&rest, STR("per_gpu"), &value))
        ask_for_gpus(all);
    start(all, free_one);
}

struct collectors *collectors_create(uv_loop_t *loop, struct scripts *scripts)
{
    struct collectors *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->loop = loop;
    all->scripts = scripts;
    all->list_fd = -1;
    return all;
}

void collectors_finish(struct collectors *all)
{
    if (!all)
        return;
    all->finishing = true;
    close_list(all);
}

void collectors_destroy(struct collectors *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < COLLECTORS_MAX; i++)
        free(all->collectors[i].line);
    buf_free(&all->listed);
    free(all);
}
