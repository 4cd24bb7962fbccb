#include "wire/mac.h"

#include <nettle/memops.h>

_Static_assert(UMAC_KEY_SIZE <= WIRE_KEY_BYTES && UMAC128_DIGEST_SIZE == WIRE_MAC_BYTES,
               "the key is the beginning of ours, the mac is whole");

void wire_mac_key_set(struct wire_mac_key *k, const uint8_t key[WIRE_KEY_BYTES])
{
    umac128_set_key(&k->umac, key);
}

void wire_mac(struct wire_mac_key *k, uint64_t number, struct str header, struct str payload,
              uint8_t out[WIRE_MAC_BYTES])
{
    umac128_set_nonce(&k->umac, sizeof number, (const uint8_t *)&number);
    if (header.size)
        umac128_update(&k->umac, header.size, (const uint8_t *)header.data);
    if (payload.size)
        umac128_update(&k->umac, payload.size, (const uint8_t *)payload.data);
    umac128_digest(&k->umac, WIRE_MAC_BYTES, out);
}

bool wire_mac_equal(const uint8_t *a, const uint8_t *b)
{
    return memeql_sec(a, b, WIRE_MAC_BYTES);
}
