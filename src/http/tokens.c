#include "http/tokens.h"

#include "base/atomic_file.h"
#include "base/hex.h"
#include "http/secrets.h"

#include <ctype.h>
#include <errno.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <sys/random.h>

bool token_valid(struct str token)
{
    for (size_t i = 0; i < token.size; i++)
        if (!isalnum((unsigned char)token.data[i]) && !memchr("-._~", token.data[i], 4))
            return false;
    return token.size && token.size <= TOKEN_MAX;
}

int token_make(char out[TOKEN_TEXT_MAX], struct error *e)
{
    unsigned char bytes[TOKEN_MADE / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(e, -errno, "cannot make a token: %s", strerror(errno));
    hex_write(bytes, sizeof bytes, out);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

// Makes the file. Returns -EEXIST if another process has made it first.
static int make_file(const char *path, struct error *e)
{
    char token[TOKEN_TEXT_MAX], line[TOKEN_TEXT_MAX + 1];
    int rc = token_make(token, e);
    if (rc)
        return rc;
    snprintf(line, sizeof line, "%s\n", token);
    rc = atomic_file_write(path, str_of(line), ATOMIC_FILE_NEW);
    explicit_bzero(token, sizeof token);
    explicit_bzero(line, sizeof line);
    return rc ? error_set(e, rc, "cannot write the token file %s: %s", path, strerror(-rc)) : 0;
}

int token_read(const char *path, bool make, char out[TOKEN_TEXT_MAX], struct error *e)
{
    struct buf text;
    struct error missing; // a missing file is not an error, because it is then made
    int rc = secrets_read(path, SECRETS_NO_LINK, &text, make ? &missing : e);
    if (rc && rc != -ENOENT && make && e)
        *e = missing;
    if (rc == -ENOENT && make) {
        rc = make_file(path, e);
        if (rc == 0 || rc == -EEXIST)
            rc = secrets_read(path, SECRETS_NO_LINK, &text, e);
    }
    if (rc)
        return rc;
    struct str token = {text.data, strcspn(buf_cstr(&text), "\r\n")};
    if (token.size < TOKEN_FILE_MIN)
        rc = error_set(e, -EINVAL,
                       "the token in %s has %zu characters; it needs at least %d: remove the file, "
                       "and sonde makes one",
                       path, token.size, TOKEN_FILE_MIN);
    else if (!token_valid(token))
        rc = error_set(e, -EINVAL,
                       "the token in %s has to consist of up to %d of A-Z a-z 0-9 - . _ ~", path,
                       TOKEN_MAX);
    else
        snprintf(out, TOKEN_TEXT_MAX, "%.*s", STR_ARG(token));
    secrets_free(&text);
    return rc;
}

void token_of_role(struct str control, enum role role, char out[TOKEN_TEXT_MAX])
{
    if (role == ROLE_CONTROL) {
        snprintf(out, TOKEN_TEXT_MAX, "%.*s", STR_ARG(control));
        return;
    }
    const char *label = role == ROLE_WRITE ? "sonde write token" : "sonde view token";
    struct hmac_sha256_ctx mac;
    unsigned char digest[SHA256_DIGEST_SIZE];
    hmac_sha256_set_key(&mac, control.size, (const uint8_t *)control.data);
    hmac_sha256_update(&mac, strlen(label), (const uint8_t *)label);
    hmac_sha256_digest(&mac, sizeof digest, digest);
    hex_write(digest, sizeof digest, out);
    explicit_bzero(&mac, sizeof mac);
}
