#include "launch/node_start.h"

#include "base/escape.h"
#include "base/ssh.h"
#include "launch/node_input.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_line(struct buf *text, const char *key, const char *value)
{
    buf_printf(text, "%s ", key);
    for (; *value; value++)
        buf_add_char(text, *value == '\n' ? ' ' : *value);
    buf_add_char(text, '\n');
}

char *node_start_text(const struct node_setup *s)
{
    struct buf text = {0};
    buf_printf(&text, "sonde-node %d\n", NODE_INPUT_VERSION);
    add_line(&text, "job", s->job);
    add_line(&text, "folder", s->folder);
    add_line(&text, "token", s->token);
    add_line(&text, "key", s->key);
    add_line(&text, "transport", s->transport);
    buf_printf(&text, "dragon-port %d\n", s->dragon_port);
    add_line(&text, "command", s->command);
    if (s->record)
        add_line(&text, "record", s->record);
    for (const char *const *argument = s->agent_arguments; *argument; argument++)
        add_line(&text, "agent", *argument);
    buf_printf(&text, "beat-ms %lld\norphan-ms %lld\nstop-ms %lld\n", (long long)s->beat_ms,
               (long long)s->orphan_ms, (long long)s->stop_ms);
    char *out = text.failed ? NULL : strdup(buf_cstr(&text));
    buf_free(&text);
    return out;
}

// Slurm must neither end the step nor wait for it when a task ends, whatever the job's environment
// says. --mem=0: the job's whole memory there, so that the step fits beside others.
// --cpu-bind=none: sonde is not bound to one of the command's cores. --label: each line names its
// task.
static int start_step(const struct allocation *allocation, const size_t *nodes, size_t count,
                      char *program, struct channel *channel, struct error *e)
{
    struct buf names = {0};
    for (size_t i = 0; i < count; i++)
        buf_printf(&names, "%s%s", i ? "," : "", allocation->hosts.names[nodes[i]]);
    char node_count[32], task_count[32];
    snprintf(node_count, sizeof node_count, "--nodes=%zu", count);
    snprintf(task_count, sizeof task_count, "--ntasks=%zu", count);
    char *argv[] = {"srun",
                    "--overlap",
                    node_count,
                    task_count,
                    "--ntasks-per-node=1",
                    "--nodelist",
                    (char *)(uintptr_t)buf_cstr(&names),
                    "--mem=0",
                    "--cpu-bind=none",
                    "--mpi=none",
                    "--no-kill",
                    "--kill-on-bad-exit=0",
                    "--wait=0",
                    "--label",
                    "--job-name=sonde",
                    "--input=all",
                    "--output=all",
                    "--error=all",
                    "--chdir=/",
                    program,
                    "node",
                    NULL};
    // no death signal, because on SIGTERM srun has the nodes killed with SIGKILL
    int status =
        names.failed ? error_set(e, -ENOMEM, "out of memory") : channel_start(channel, argv, 0, e);
    buf_free(&names);
    return status;
}

int node_start(const struct allocation *allocation, const size_t *nodes, size_t count,
               const char *program_path, struct channel *channel, struct error *e)
{
    char *program = (char *)(uintptr_t)program_path;
    if (allocation->kind == ALLOCATION_SLURM)
        return start_step(allocation, nodes, count, program, channel, e);
    struct buf command = {0};
    buf_add_str(&command, STR("exec "));
    escape_for_shell(&command, str_of(program));
    buf_add_str(&command, STR(" node"));
    // A partition must not break the connection while the node still waits for the launcher.
    static const char *const options[] = {"-oClearAllForwardings=yes", NULL};
    struct ssh_words ssh;
    ssh_words(&ssh, options, 20, allocation->hosts.names[nodes[0]], buf_cstr(&command));
    int status = command.failed ? error_set(e, -ENOMEM, "out of memory")
                                : channel_start(channel, ssh.argv, SIGTERM, e);
    buf_free(&command);
    return status;
}
