#include "http/server_proof.h"

#include "base/hex.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

bool server_nonce_make(char out[SERVER_NONCE_CHARACTERS + 1])
{
    uint8_t bytes[SERVER_NONCE_CHARACTERS / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    hex_write(bytes, sizeof bytes, out);
    return true;
}

bool server_nonce_valid(struct str nonce)
{
    for (size_t i = 0; i < nonce.size; i++)
        if (!strchr("0123456789abcdef", nonce.data[i]) || !nonce.data[i])
            return false;
    return nonce.size == SERVER_NONCE_CHARACTERS;
}

bool server_address_text(const struct sockaddr *address, char out[SERVER_ADDRESS_MAX])
{
    char digits[INET6_ADDRSTRLEN];
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        inet_ntop(AF_INET, &v4->sin_addr, digits, sizeof digits);
        snprintf(out, SERVER_ADDRESS_MAX, "%s:%d", digits, ntohs(v4->sin_port));
        return true;
    }
    if (address->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    if (mapped)
        inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, digits, sizeof digits);
    else
        inet_ntop(AF_INET6, &v6->sin6_addr, digits, sizeof digits);
    snprintf(out, SERVER_ADDRESS_MAX, mapped ? "%s:%d" : "[%s]:%d", digits, ntohs(v6->sin6_port));
    return true;
}

void server_proof_make(struct str token, struct str nonce, struct str address,
                       char out[SERVER_PROOF_CHARACTERS + 1])
{
    static const char label[] = "sonde server proof\n";
    struct hmac_sha256_ctx mac;
    uint8_t digest[SHA256_DIGEST_SIZE];
    hmac_sha256_set_key(&mac, token.size, (const uint8_t *)token.data);
    hmac_sha256_update(&mac, sizeof label - 1, (const uint8_t *)label);
    hmac_sha256_update(&mac, nonce.size, (const uint8_t *)nonce.data); // its size is fixed
    hmac_sha256_update(&mac, address.size, (const uint8_t *)address.data);
    hmac_sha256_digest(&mac, sizeof digest, digest);
    hex_write(digest, sizeof digest, out);
    explicit_bzero(&mac, sizeof mac);
}

bool server_proof_check(struct str answer, struct str token, struct str nonce, struct str *address)
{
    char expected[SERVER_PROOF_CHARACTERS + 1];
    *address = str_cut(&answer, '\n');
    if (!address->size || address->size >= SERVER_ADDRESS_MAX)
        return false;
    server_proof_make(token, nonce, *address, expected);
    bool proved = false;
    for (int i = 0; i < SERVER_PROOFS_MAX && answer.data; i++) {
        struct str proof = str_cut(&answer, '\n');
        proved |= proof.size == SERVER_PROOF_CHARACTERS &&
                  memeql_sec(proof.data, expected, SERVER_PROOF_CHARACTERS);
    }
    return proved;
}
