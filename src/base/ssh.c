#include "base/ssh.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>

static void add(struct ssh_words *w, size_t *count, const char *word)
{
    assert(*count < SSH_WORDS_MAX);
    w->argv[(*count)++] = (char *)(uintptr_t)word;
}

void ssh_words(struct ssh_words *out, const char *const *options, int silent_times,
               const char *host, const char *command)
{
    static const char *const always[] = {"-T",
                                         "-x",
                                         "-a",
                                         "-oBatchMode=yes",
                                         "-oConnectTimeout=8",
                                         "-oServerAliveInterval=15",
                                         "-oControlPath=none"};
    size_t count = 0;
    snprintf(out->silent, sizeof out->silent, "-oServerAliveCountMax=%d", silent_times);
    add(out, &count, "ssh");
    for (; *options; options++)
        add(out, &count, *options);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        add(out, &count, always[i]);
    add(out, &count, out->silent);
    add(out, &count, "--");
    add(out, &count, host);
    if (command)
        add(out, &count, command);
    add(out, &count, NULL);
}
