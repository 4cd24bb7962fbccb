// A server's proof is valid only with the token, for this nonce, at this address.
#include "http/server_proof.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static const struct str token = {"0123456789abcdef0123456789abcdef", 32},
                        nonce = {"00112233445566778899aabbccddeeff", 32};

static void proof_of_known_bytes(void **state)
{
    (void)state;
    char proof[SERVER_PROOF_CHARACTERS + 1];
    server_proof_make(token, nonce, STR("127.0.0.1:4242"), proof);
    // From: printf 'sonde server proof\n00112233445566778899aabbccddeeff127.0.0.1:4242' | openssl
    // dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
    assert_string_equal(proof, "605c0f02817b60f74d409abbb10e52711a0971c73d2facf7bb4bcccc8f18739b");
}

static bool checks(const char *answer, struct str with, struct str for_nonce)
{
    struct str address;
    return server_proof_check(str_of(answer), with, for_nonce, &address);
}

static void a_proof_is_valid_for_its_connection_only(void **state)
{
    (void)state;
    char proof[SERVER_PROOF_CHARACTERS + 1], answer[512];
    struct str address, other = {"ffeeddccbbaa99887766554433221100", 32};
    server_proof_make(token, nonce, STR("127.0.0.1:4242"), proof);
    // the second of its tokens
    snprintf(answer, sizeof answer, "127.0.0.1:4242\n%064d\n%s\n", 0, proof);
    assert_true(server_proof_check(str_of(answer), token, nonce, &address));
    assert_true(str_eq(address, STR("127.0.0.1:4242")));
    assert_false(checks(answer, STR("another token, as long as the one"), nonce));
    assert_false(checks(answer, token, other));
    // of a server at another address
    snprintf(answer, sizeof answer, "127.0.0.1:4243\n%s\n", proof);
    assert_false(checks(answer, token, nonce));
}

static void answers_of_strangers(void **state)
{
    (void)state;
    char proof[SERVER_PROOF_CHARACTERS + 1], answer[2048], many[SERVER_ADDRESS_MAX + 2];
    static const char *const bad[] = {"",
                                      "\n",
                                      "127.0.0.1:4242",
                                      "127.0.0.1:4242\n",
                                      "127.0.0.1:4242\n\n\n\n",
                                      "<html>\n<body>\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(checks(bad[i], token, nonce));
    server_proof_make(token, nonce, STR("127.0.0.1:4242"), proof);
    snprintf(answer, sizeof answer, "127.0.0.1:4242\n%.63s\n", proof);
    assert_false(checks(answer, token, nonce));
    // An address that is too long, with a valid proof.
    memset(many, '1', sizeof many);
    many[sizeof many - 1] = 0;
    server_proof_make(token, nonce, str_of(many), proof);
    snprintf(answer, sizeof answer, "%s\n%s\n", many, proof);
    assert_false(checks(answer, token, nonce));
}

static void nonces(void **state)
{
    (void)state;
    char a[SERVER_NONCE_CHARACTERS + 1], b[SERVER_NONCE_CHARACTERS + 1];
    assert_true(server_nonce_make(a) && server_nonce_make(b));
    assert_string_not_equal(a, b);
    assert_true(server_nonce_valid(str_of(a)));
    assert_false(server_nonce_valid(STR("")));
    assert_false(server_nonce_valid(STR("00112233445566778899aabbccddeef")));
    assert_false(server_nonce_valid(STR("00112233445566778899aabbccddeeF0")));
    assert_false(server_nonce_valid(STR("0011223344556677 899aabbccddeeff")));
}

static void addresses(void **state)
{
    (void)state;
    char text[SERVER_ADDRESS_MAX];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(4242)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    inet_pton(AF_INET, "127.0.0.1", &v4.sin_addr);
    assert_true(server_address_text((const struct sockaddr *)&v4, text));
    assert_string_equal(text, "127.0.0.1:4242");
    inet_pton(AF_INET6, "::1", &v6.sin6_addr);
    assert_true(server_address_text((const struct sockaddr *)&v6, text));
    assert_string_equal(text, "[::1]:80");
    inet_pton(AF_INET6, "::ffff:10.0.0.7", &v6.sin6_addr);
    assert_true(server_address_text((const struct sockaddr *)&v6, text));
    assert_string_equal(text, "10.0.0.7:80");
    struct sockaddr local = {.sa_family = AF_UNIX};
    assert_false(server_address_text(&local, text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proof_of_known_bytes),
        cmocka_unit_test(a_proof_is_valid_for_its_connection_only),
        cmocka_unit_test(answers_of_strangers),
        cmocka_unit_test(nonces),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
