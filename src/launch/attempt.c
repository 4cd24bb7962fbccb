#include "launch/attempt.h"

#include "base/log.h"

#include <errno.h>
#include <sonde.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void attempt_annotate(const char *socket, int attempt, size_t nodes)
{
    pid_t pid = fork();
    if (pid < 0)
        log_warning("the recording will not say where attempt %d begins: %s", attempt,
                    strerror(errno));
    if (pid != 0)
        return;
    char text[64], number[16], count[24];
    snprintf(text, sizeof text, "attempt %d on %zu node%s", attempt, nodes, nodes == 1 ? "" : "s");
    snprintf(number, sizeof number, "%d", attempt);
    snprintf(count, sizeof count, "%zu", nodes);
    setenv("SONDE_SOCKET", socket, 1);
    setenv("SONDE_LEVEL", "1", 1);
    unsetenv("SONDE_TAGS");
    sonde_annotate(text, "attempt", number, "nodes", count);
    _exit(0); // the emitted annotation survives this process
}
