#include "wire/handshake.h"

#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>

_Static_assert(WIRE_PROOF_BYTES == SHA256_DIGEST_SIZE && WIRE_KEY_BYTES == SHA256_DIGEST_SIZE,
               "proofs and keys are whole digests");

// The bytes of a HELLO or CHALLENGE beside its names and proof: role, session, attempt, nonce, two
// sizes of two bytes, abilities.
enum { FIXED_BYTES = 1 + 8 + 8 + WIRE_NONCE_BYTES + 4 + 1 };
_Static_assert(FIXED_BYTES + WIRE_HOST_MAX + WIRE_JOB_MAX + WIRE_PROOF_BYTES <= WIRE_HELLO_MAX,
               "the longest fits");

// ---- identities ----

static void write_identity(const struct wire_identity *who, const uint8_t nonce[WIRE_NONCE_BYTES],
                           struct buf *out)
{
    buf_u8(out, (uint8_t)who->role);
    buf_u64(out, who->session);
    buf_u64(out, who->attempt);
    buf_add(out, nonce, WIRE_NONCE_BYTES);
    buf_short(out, who->host);
    buf_short(out, who->job);
    if (who->abilities)
        buf_u8(out, who->abilities);
}

static int read_identity(struct bytes *b, struct wire_identity *who, struct error *e)
{
    unsigned role = bytes_u8(b);
    *who = (struct wire_identity){
        .role = (enum wire_role)role, .session = bytes_u64(b), .attempt = bytes_u64(b)};
    bytes_take(b, WIRE_NONCE_BYTES);
    who->host = bytes_short(b);
    who->job = bytes_short(b);
    who->abilities = bytes_left(b) ? bytes_u8(b) : 0;
    if (b->failed || bytes_left(b) || role >= WIRE_ROLE_COUNT || who->host.size == 0 ||
        who->host.size > WIRE_HOST_MAX || who->job.size > WIRE_JOB_MAX)
        return error_set(e, -EBADMSG, "not a greeting of this protocol");
    // Names must be printable, because messages to users contain them.
    for (size_t i = 0; i < who->host.size; i++)
        if ((unsigned char)who->host.data[i] <= ' ' || who->host.data[i] == 127)
            return error_set(e, -EBADMSG, "a host's name with blanks or control characters");
    return 0;
}

// ---- proofs and keys ----

static void digest(const struct wire_handshake *h, const char *label,
                   uint8_t out[SHA256_DIGEST_SIZE])
{
    bool link = h->side == WIRE_LINK;
    struct str hello = {link ? h->own_introduction : h->peer_introduction,
                        link ? h->own_introduction_size : h->peer_introduction_size};
    struct str challenge = {link ? h->peer_introduction : h->own_introduction,
                            link ? h->peer_introduction_size : h->own_introduction_size};
    uint8_t version = WIRE_VERSION;
    uint32_t hello_size = (uint32_t)hello.size, challenge_size = (uint32_t)challenge.size;
    struct hmac_sha256_ctx mac;
    hmac_sha256_set_key(&mac, WIRE_KEY_BYTES, h->key);
    hmac_sha256_update(&mac, strlen(label), (const uint8_t *)label);
    hmac_sha256_update(&mac, strlen("sonde wire"), (const uint8_t *)"sonde wire");
    hmac_sha256_update(&mac, sizeof version, &version);
    hmac_sha256_update(&mac, sizeof hello_size, (const uint8_t *)&hello_size);
    hmac_sha256_update(&mac, hello.size, (const uint8_t *)hello.data);
    hmac_sha256_update(&mac, sizeof challenge_size, (const uint8_t *)&challenge_size);
    hmac_sha256_update(&mac, challenge.size, (const uint8_t *)challenge.data);
    hmac_sha256_digest(&mac, SHA256_DIGEST_SIZE, out);
}

static void make_keys(struct wire_handshake *h)
{
    bool link = h->side == WIRE_LINK;
    digest(h, "from hub ", link ? h->receive_key : h->send_key);
    digest(h, "from link ", link ? h->send_key : h->receive_key);
    digest(h, "window ", h->window_key);
}

// ---- the exchange ----

static int keep(char to[WIRE_HELLO_MAX], size_t *size, struct str text, struct error *e)
{
    if (text.size > WIRE_HELLO_MAX)
        return error_set(e, -EINVAL, "a greeting of %zu bytes", text.size);
    memcpy(to, text.data, text.size);
    *size = text.size;
    return 0;
}

// Writes our own introduction into `own_introduction` and *out.
static int introduce(struct wire_handshake *h, struct buf *out, struct error *e)
{
    size_t from = out->size;
    write_identity(&h->self, h->own_nonce, out);
    if (out->failed)
        return error_set(e, -ENOMEM, "no memory for a greeting");
    return keep(h->own_introduction, &h->own_introduction_size,
                (struct str){out->data + from, out->size - from}, e);
}

// Reads the other end's introduction into `peer_introduction` and `peer`.
static int meet(struct wire_handshake *h, struct str body, struct error *e)
{
    int r = keep(h->peer_introduction, &h->peer_introduction_size, body, e);
    struct bytes b = bytes_of(h->peer_introduction, h->peer_introduction_size);
    return r ? -EBADMSG : read_identity(&b, &h->peer, e);
}

static int same_job(const struct wire_handshake *h, struct error *e)
{
    if (str_eq(h->peer.job, h->self.job))
        return 0;
    return error_set(e, -EPROTO, "the other end is of another job");
}

int wire_handshake_begin(struct wire_handshake *h, enum wire_side side,
                         const struct wire_identity *self, const struct wire_settings *settings,
                         struct buf *out, struct error *e)
{
    *h = (struct wire_handshake){
        .side = side, .self = *self, .awaited = side == WIRE_HUB ? WIRE_HELLO : WIRE_CHALLENGE};
    memcpy(h->key, settings->key, WIRE_KEY_BYTES);
    if (self->host.size == 0 || self->host.size > WIRE_HOST_MAX || self->job.size > WIRE_JOB_MAX)
        return error_set(e, -EINVAL, "a host's name has 1 to %d bytes, a job's at most %d",
                         WIRE_HOST_MAX, WIRE_JOB_MAX);
    int r = wire_random(settings, h->own_nonce, WIRE_NONCE_BYTES);
    if (r)
        return error_set(e, r, "no random numbers: %s", strerror(-r));
    return side == WIRE_LINK ? introduce(h, out, e) : 0;
}

static int take_hello(struct wire_handshake *h, struct str payload, struct buf *out,
                      struct error *e)
{
    int r = meet(h, payload, e);
    if (r == 0)
        r = same_job(h, e);
    if (!h->peer.abilities)
        h->self.abilities = 0;
    if (r == 0)
        r = introduce(h, out, e);
    if (r)
        return r;
    uint8_t proof[WIRE_PROOF_BYTES];
    digest(h, "hub proof ", proof);
    buf_add(out, proof, sizeof proof);
    h->awaited = WIRE_PROOF;
    return 0;
}

static int take_challenge(struct wire_handshake *h, struct str payload, struct buf *out,
                          struct error *e)
{
    if (payload.size < WIRE_PROOF_BYTES)
        return error_set(e, -EBADMSG, "not a challenge of this protocol");
    size_t body = payload.size - WIRE_PROOF_BYTES;
    int r = meet(h, (struct str){payload.data, body}, e);
    if (r == 0)
        r = same_job(h, e);
    if (r)
        return r;
    uint8_t proof[WIRE_PROOF_BYTES];
    digest(h, "hub proof ", proof);
    if (!memeql_sec(proof, payload.data + body, sizeof proof))
        return error_set(e, -EACCES, "the parent does not know the job's key");
    digest(h, "link proof ", proof);
    buf_add(out, proof, sizeof proof);
    make_keys(h);
    h->awaited = WIRE_NOTHING;
    return 0;
}

static int take_proof(struct wire_handshake *h, struct str payload, struct error *e)
{
    uint8_t proof[WIRE_PROOF_BYTES];
    digest(h, "link proof ", proof);
    if (payload.size != WIRE_PROOF_BYTES)
        return error_set(e, -EBADMSG, "a proof of %zu bytes", payload.size);
    if (!memeql_sec(proof, payload.data, sizeof proof))
        return error_set(e, -EACCES, "the other end does not know the job's key");
    make_keys(h);
    h->awaited = WIRE_NOTHING;
    return 0;
}

int wire_handshake_take(struct wire_handshake *h, struct str payload, struct buf *out,
                        struct error *e)
{
    int r = h->awaited == WIRE_HELLO       ? take_hello(h, payload, out, e)
            : h->awaited == WIRE_CHALLENGE ? take_challenge(h, payload, out, e)
            : h->awaited == WIRE_PROOF     ? take_proof(h, payload, e)
                                           : error_set(e, -EBADMSG, "the greeting is over");
    return r == 0 && out->failed ? error_set(e, -ENOMEM, "no memory for a greeting") : r;
}
