#include "wire/settings.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEARTBEAT_MS = 1000,
    DEAD_MS = 10000,
    HANDSHAKE_MS = 5000,
    RETRY_MS = 100,
    RETRY_MAX_MS = 5000,
    RETURN_MS = 60000,
};

struct wire_settings wire_settings_of(const struct wire_settings *in)
{
    struct wire_settings s = *in;
    s.heartbeat_ms = s.heartbeat_ms ? s.heartbeat_ms : HEARTBEAT_MS;
    s.dead_ms = s.dead_ms ? s.dead_ms : DEAD_MS;
    s.handshake_ms = s.handshake_ms ? s.handshake_ms : HANDSHAKE_MS;
    s.retry_ms = s.retry_ms ? s.retry_ms : RETRY_MS;
    s.retry_max_ms = s.retry_max_ms ? s.retry_max_ms : RETRY_MAX_MS;
    s.return_ms = s.return_ms ? s.return_ms : RETURN_MS;
    return s;
}

int64_t wire_monotonic_ns(const struct wire_settings *s)
{
    return s->clock.monotonic_ns ? s->clock.monotonic_ns(s->clock.user) : clock_monotonic_ns();
}

int64_t wire_realtime_ns(const struct wire_settings *s)
{
    return s->clock.realtime_ns ? s->clock.realtime_ns(s->clock.user) : clock_realtime_ns();
}

int wire_random(const struct wire_settings *s, uint8_t *out, size_t size)
{
    if (s->random)
        return s->random(s->random_user, out, size);
    for (size_t done = 0; done < size;) {
        ssize_t n = getrandom(out + done, size - done, 0);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

// ---- the key's file ----

static int read_key(int fd, const char *path, uint8_t key[WIRE_KEY_BYTES], struct error *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_set(e, -errno, "cannot look at the key %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size != WIRE_KEY_BYTES)
        return error_set(e, -EINVAL, "%s is not a key: it has to be a file of %d bytes", path,
                         WIRE_KEY_BYTES);
    if (st.st_uid != geteuid())
        return error_set(e, -EPERM, "the key %s belongs to another user", path);
    if (st.st_mode & 077)
        return error_set(e, -EPERM, "the key %s can be read by others: chmod 600 it", path);
    if (read(fd, key, WIRE_KEY_BYTES) != WIRE_KEY_BYTES)
        return error_set(e, -EIO, "cannot read the key %s", path);
    return 0;
}

int wire_key_read(const char *path, uint8_t key[WIRE_KEY_BYTES], struct error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return error_set(e, -errno, "cannot open the key %s: %s", path, strerror(errno));
    int r = read_key(fd, path, key, e);
    close(fd);
    return r;
}

int wire_key_make(const char *path, uint8_t key[WIRE_KEY_BYTES], struct error *e)
{
    struct wire_settings system = {0};
    int r = wire_random(&system, key, WIRE_KEY_BYTES);
    if (r)
        return error_set(e, r, "no random numbers for a key: %s", strerror(-r));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(e, -errno, "cannot make the key %s: %s", path, strerror(errno));
    bool written = write(fd, key, WIRE_KEY_BYTES) == WIRE_KEY_BYTES;
    int code = written ? 0 : -(errno ? errno : ENOSPC);
    if (close(fd) != 0 && !code)
        code = -errno;
    if (!code)
        return 0;
    unlink(path);
    return error_set(e, code, "cannot write the key %s: %s", path, strerror(-code));
}
