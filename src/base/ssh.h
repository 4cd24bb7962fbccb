// ssh.h - how ssh is called everywhere here: nobody is asked for a password, nothing is forwarded unless the caller says so, and the connection is one of its own, so that it ends
// with its process. A host that cannot be reached within 8 s is given up, and one that has fallen silent after some times 15 s.
#ifndef SONDE_BASE_SSH_H
#define SONDE_BASE_SSH_H

#include <stddef.h>

enum { SSH_OPTIONS_MAX = 4, SSH_WORDS_MAX = SSH_OPTIONS_MAX + 13 };

struct ssh_words {
    char silent[48];
    char *argv[SSH_WORDS_MAX]; // ends with NULL; never written to
};

// `options` (at most SSH_OPTIONS_MAX, ends with NULL) come first. `command` NULL: none. All of them have to live as long as *out is used, which may not be moved.
void ssh_words(struct ssh_words *out, const char *const *options, int silent_times, const char *host,
               const char *command);

#endif
