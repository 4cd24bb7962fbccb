// ssh.h - makes the command line of ssh. ssh asks for no password and forwards nothing unless the
// caller requests it. Each call has a connection of its own, so that the connection ends with its
// process. ssh gives up after 8 s if it cannot reach the host, and after `silent_times` × 15 s if
// the host stops answering.
#ifndef SONDE_BASE_SSH_H
#define SONDE_BASE_SSH_H

#include <stddef.h>

enum { SSH_OPTIONS_MAX = 4, SSH_WORDS_MAX = SSH_OPTIONS_MAX + 13 };

struct ssh_words {
    char silent[48];
    char *argv[SSH_WORDS_MAX]; // ends with NULL; read-only
};

// Makes the words. `options` (at most SSH_OPTIONS_MAX, ends with NULL) come first. `command` may be
// NULL. All texts must live as long as *out, which must not be moved.
void ssh_words(struct ssh_words *out, const char *const *options, int silent_times,
               const char *host, const char *command);

#endif
