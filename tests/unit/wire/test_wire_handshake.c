// The handshake, byte by byte: accepted and refused peers. And frames and messages: round trips,
// and refused damage.
#include "unit/test.h"
#include "wire/clock_offset.h"
#include "wire/handshake.h"
#include "wire/mac.h"
#include "wire/messages.h"

#include <errno.h>

// Pseudo-random numbers that differ between calls, and are the same in each test run.
static int counted_random(void *user, uint8_t *out, size_t size)
{
    uint8_t *next = user;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(*next * 31u + i);
    (*next)++;
    return 0;
}

static uint8_t draws;

static struct wire_settings settings(uint8_t key)
{
    struct wire_settings s = {.job = STR("job"), .random = counted_random, .random_user = &draws};
    memset(s.key, key, sizeof s.key);
    return s;
}

static struct wire_identity identity(const char *host, const char *job)
{
    return (struct wire_identity){.role = WIRE_ROLE_NODE,
                                  .session = 7,
                                  .attempt = 1,
                                  .host = str_of(host),
                                  .job = str_of(job)};
}

struct pair {
    struct wire_handshake hub, link;
    struct buf hello, challenge, proof, nothing;
    struct error e;
};

static void pair_begin(struct pair *p, uint8_t hub_key, uint8_t link_key)
{
    struct wire_settings hs = settings(hub_key), ls = settings(link_key);
    struct wire_identity hub = identity("head", "job"), link = identity("n1", "job");
    *p = (struct pair){0};
    assert_int_equal(wire_handshake_begin(&p->hub, WIRE_HUB, &hub, &hs, &p->nothing, &p->e), 0);
    assert_int_equal(wire_handshake_begin(&p->link, WIRE_LINK, &link, &ls, &p->hello, &p->e), 0);
}

static void pair_free(struct pair *p)
{
    buf_free(&p->hello);
    buf_free(&p->challenge);
    buf_free(&p->proof);
    buf_free(&p->nothing);
}

static void a_peer_with_the_key_is_welcomed(void **state)
{
    (void)state;
    struct pair p;
    pair_begin(&p, 1, 1);
    assert_int_equal(wire_handshake_take(&p.hub, buf_str(&p.hello), &p.challenge, &p.e), 0);
    assert_int_equal(p.hub.awaited, WIRE_PROOF);
    assert_int_equal(wire_handshake_take(&p.link, buf_str(&p.challenge), &p.proof, &p.e), 0);
    assert_int_equal(wire_handshake_take(&p.hub, buf_str(&p.proof), &p.nothing, &p.e), 0);
    assert_int_equal(p.hub.awaited, WIRE_NOTHING);
    assert_int_equal(p.link.awaited, WIRE_NOTHING);
    assert_str_equal(p.hub.peer.host, "n1");
    assert_str_equal(p.link.peer.host, "head");
    assert_int_equal(p.hub.peer.session, 7);
    // A key for each direction, equal at both ends.
    assert_memory_equal(p.hub.send_key, p.link.receive_key, WIRE_KEY_BYTES);
    assert_memory_equal(p.hub.receive_key, p.link.send_key, WIRE_KEY_BYTES);
    assert_memory_not_equal(p.hub.send_key, p.hub.receive_key, WIRE_KEY_BYTES);
    pair_free(&p);
}

// The ends use abilities that both have. An end that does not know abilities is not told any.
static void abilities_are_exchanged_if_both_ends_have_them(void **state)
{
    (void)state;
    static const struct {
        uint8_t hub, link, heard_by_hub, heard_by_link;
    } cases[] = {{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 1, 0}, {1, 1, 1, 1}, {1, 0x80, 0x80, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pair p;
        pair_begin(&p, 1, 1);
        struct wire_settings s = settings(1);
        struct wire_identity hub = identity("head", "job"), link = identity("n1", "job");
        size_t without = p.hello.size;
        hub.abilities = cases[i].hub;
        link.abilities = cases[i].link;
        p.hello.size = 0;
        assert_int_equal(wire_handshake_begin(&p.hub, WIRE_HUB, &hub, &s, &p.nothing, &p.e), 0);
        assert_int_equal(wire_handshake_begin(&p.link, WIRE_LINK, &link, &s, &p.hello, &p.e), 0);
        // the same as before abilities existed
        assert_int_equal(p.hello.size, without + (link.abilities != 0));
        assert_int_equal(wire_handshake_take(&p.hub, buf_str(&p.hello), &p.challenge, &p.e), 0);
        assert_int_equal(wire_handshake_take(&p.link, buf_str(&p.challenge), &p.proof, &p.e), 0);
        assert_int_equal(wire_handshake_take(&p.hub, buf_str(&p.proof), &p.nothing, &p.e), 0);
        assert_int_equal(p.hub.peer.abilities, cases[i].heard_by_hub);
        assert_int_equal(p.link.peer.abilities, cases[i].heard_by_link);
        assert_memory_equal(p.hub.window_key, p.link.window_key, WIRE_KEY_BYTES);
        assert_memory_not_equal(p.hub.window_key, p.hub.receive_key, WIRE_KEY_BYTES);
        pair_free(&p);
    }
}

// RFC 4418 has vectors of 96 bits, which are the beginning of ours.
static void macs_are_those_of_the_rfc(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        uint8_t mac[12];
    } vectors[] = {
        {0, {0x32, 0xFE, 0xDB, 0x10, 0x0C, 0x79, 0xAD, 0x58, 0xF0, 0x7F, 0xF7, 0x64}},
        {3, {0x18, 0x5E, 0x4F, 0xE9, 0x05, 0xCB, 0xA7, 0xBD, 0x85, 0xE4, 0xC2, 0xDC}},
        {1024, {0x7A, 0x54, 0xAB, 0xE0, 0x4A, 0xF8, 0x2D, 0x60, 0xFB, 0x29, 0x8C, 0x3C}},
    };
    static const uint8_t key[WIRE_KEY_BYTES] = "abcdefghijklmnop";
    static char text[1024];
    memset(text, 'a', sizeof text);
    struct wire_mac_key k;
    uint64_t number;
    memcpy(&number, "bcdefghi", sizeof number);
    wire_mac_key_set(&k, key);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint8_t mac[WIRE_MAC_BYTES];
        size_t header = vectors[i].size / 3;
        wire_mac(&k, number, (struct str){text, header},
                 (struct str){text, vectors[i].size - header}, mac);
        assert_memory_equal(mac, vectors[i].mac, sizeof vectors[i].mac);
        uint8_t again[WIRE_MAC_BYTES];
        wire_mac(&k, number + 1, (struct str){0}, (struct str){text, vectors[i].size}, again);
        assert_false(wire_mac_equal(mac, again));
    }
}

static void both_ends_see_a_wrong_key(void **state)
{
    (void)state;
    struct pair p;
    pair_begin(&p, 1, 2);
    assert_int_equal(wire_handshake_take(&p.hub, buf_str(&p.hello), &p.challenge, &p.e), 0);
    assert_int_equal(wire_handshake_take(&p.link, buf_str(&p.challenge), &p.proof, &p.e), -EACCES);
    assert_int_equal(p.proof.size, 0);
    // A peer that ignores our proof sends a guess.
    uint8_t guess[WIRE_PROOF_BYTES] = {0};
    assert_int_equal(
        wire_handshake_take(&p.hub, (struct str){(char *)guess, sizeof guess}, &p.nothing, &p.e),
        -EACCES);
    pair_free(&p);
}

// A hub refuses an unknown role, as an older hub refuses a client.
static void an_unknown_role_is_refused(void **state)
{
    (void)state;
    for (int role = WIRE_ROLE_NODE; role <= WIRE_ROLE_COUNT; role++) {
        struct pair p;
        pair_begin(&p, 1, 1);
        p.hello.data[0] = (char)role;
        assert_int_equal(wire_handshake_take(&p.hub, buf_str(&p.hello), &p.challenge, &p.e),
                         role < WIRE_ROLE_COUNT ? 0 : -EBADMSG);
        pair_free(&p);
    }
}

static void refuses_a_replay(void **state)
{
    (void)state;
    struct pair first, second;
    pair_begin(&first, 1, 1);
    wire_handshake_take(&first.hub, buf_str(&first.hello), &first.challenge, &first.e);
    wire_handshake_take(&first.link, buf_str(&first.challenge), &first.proof, &first.e);
    assert_int_equal(
        wire_handshake_take(&first.hub, buf_str(&first.proof), &first.nothing, &first.e), 0);
    // The same bytes again, on the same hub's next connection.
    pair_begin(&second, 1, 1);
    assert_int_equal(
        wire_handshake_take(&second.hub, buf_str(&first.hello), &second.challenge, &second.e), 0);
    assert_int_equal(
        wire_handshake_take(&second.hub, buf_str(&first.proof), &second.nothing, &second.e),
        -EACCES);
    // And an old challenge for a new link.
    assert_int_equal(
        wire_handshake_take(&second.link, buf_str(&first.challenge), &second.proof, &second.e),
        -EACCES);
    pair_free(&first);
    pair_free(&second);
}

// A peer without the key sends a hub's own proof back to it.
static void refuses_a_reflection(void **state)
{
    (void)state;
    struct pair p;
    pair_begin(&p, 1, 1);
    wire_handshake_take(&p.hub, buf_str(&p.hello), &p.challenge, &p.e);
    struct str own =
        str_slice(buf_str(&p.challenge), p.challenge.size - WIRE_PROOF_BYTES, p.challenge.size);
    assert_int_equal(wire_handshake_take(&p.hub, own, &p.nothing, &p.e), -EACCES);
    // And sends a link its own HELLO as a challenge, with any proof.
    buf_add(&p.hello, own.data, own.size);
    assert_int_equal(wire_handshake_take(&p.link, buf_str(&p.hello), &p.proof, &p.e), -EACCES);
    pair_free(&p);
}

// Every bit that is exchanged counts.
static void sees_every_changed_bit(void **state)
{
    (void)state;
    struct pair whole;
    pair_begin(&whole, 1, 1);
    wire_handshake_take(&whole.hub, buf_str(&whole.hello), &whole.challenge, &whole.e);
    for (size_t bit = 0; bit < whole.hello.size * 8; bit++) {
        struct pair p;
        draws = 0;
        pair_begin(&p, 1, 1);
        p.hello.data[bit / 8] ^= (char)(1 << bit % 8);
        int r = wire_handshake_take(&p.hub, buf_str(&p.hello), &p.challenge, &p.e);
        if (r == 0)
            r = wire_handshake_take(&p.link, buf_str(&p.challenge), &p.proof, &p.e);
        assert_int_not_equal(r, 0);
        pair_free(&p);
    }
    for (size_t bit = 0; bit < whole.challenge.size * 8; bit++) {
        struct pair p;
        draws = 0;
        pair_begin(&p, 1, 1);
        wire_handshake_take(&p.hub, buf_str(&p.hello), &p.challenge, &p.e);
        p.challenge.data[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_not_equal(wire_handshake_take(&p.link, buf_str(&p.challenge), &p.proof, &p.e),
                             0);
        pair_free(&p);
    }
    pair_free(&whole);
}

static void refuses_other_jobs_and_bad_names(void **state)
{
    (void)state;
    struct wire_settings s = settings(1);
    struct wire_handshake hub, link;
    struct wire_identity head = identity("head", "job"), other = identity("n1", "another");
    struct buf hello = {0}, reply = {0};
    struct error e;
    wire_handshake_begin(&hub, WIRE_HUB, &head, &s, &reply, &e);
    assert_int_equal(wire_handshake_begin(&link, WIRE_LINK, &other, &s, &hello, &e), 0);
    assert_int_equal(wire_handshake_take(&hub, buf_str(&hello), &reply, &e), -EPROTO);
    hello.size = 0;
    struct wire_identity odd = identity("n1\n[error]", "job"), empty = identity("", "job");
    assert_int_equal(wire_handshake_begin(&link, WIRE_LINK, &odd, &s, &hello, &e), 0);
    assert_int_equal(wire_handshake_take(&hub, buf_str(&hello), &reply, &e), -EBADMSG);
    assert_int_equal(wire_handshake_begin(&link, WIRE_LINK, &empty, &s, &hello, &e), -EINVAL);
    for (size_t size = 0; size < hello.size; size++)
        assert_int_equal(wire_handshake_take(&hub, str_slice(buf_str(&hello), 0, size), &reply, &e),
                         -EBADMSG);
    buf_free(&hello);
    buf_free(&reply);
}

// ---- frames and messages ----

static void headers_are_checked_by_stage_and_side(void **state)
{
    (void)state;
    struct wire_header got;
    struct error e;
    uint8_t bytes[WIRE_HEADER_BYTES];
    for (unsigned type = 0; type < 256; type++)
        for (int side = 0; side < 2; side++)
            for (int opened = 0; opened < 2; opened++) {
                const struct wire_frame_row *row = wire_frame_row((enum wire_type)type);
                struct wire_header h = {
                    .size = row ? row->size_max : 0, .id = 77, .type = (enum wire_type)type};
                wire_header_write(&h, bytes);
                bool allowed = row && row->from & 1 << side && row->opening != opened;
                assert_int_equal(wire_header_read(bytes, (enum wire_side)side, opened, &got, &e),
                                 allowed ? 0 : -EBADMSG);
                if (!allowed)
                    continue;
                assert_int_equal(got.size, row->size_max);
                assert_int_equal(got.id, 77);
                h.size++;
                wire_header_write(&h, bytes);
                assert_int_equal(wire_header_read(bytes, (enum wire_side)side, opened, &got, &e),
                                 -EBADMSG);
                h.size = 1u << 31;
                wire_header_write(&h, bytes);
                assert_int_equal(wire_header_read(bytes, (enum wire_side)side, opened, &got, &e),
                                 -EBADMSG);
                h.size = 0;
                wire_header_write(&h, bytes);
                bytes[5]++; // version
                assert_int_equal(wire_header_read(bytes, (enum wire_side)side, opened, &got, &e),
                                 -EBADMSG);
                assert_non_null(strstr(e.text, "version"));
            }
}

static void messages_are_read_completely_or_not_at_all(void **state)
{
    (void)state;
    struct buf b = {0};
    struct arena arena = {0};
    struct str hosts[] = {STR("n1"), STR("n2")};
    struct wire_ask ask = {.question = 3,
                           .credit = 1000,
                           .remaining_ms = 50,
                           .hosts = hosts,
                           .host_count = 2,
                           .request = STR("what?")},
                    got;
    wire_ask_write(&ask, &b);
    assert_int_equal(wire_ask_read(buf_str(&b), &arena, &got), 0);
    assert_int_equal(got.question, 3);
    assert_int_equal(got.credit, 1000);
    assert_int_equal(got.host_count, 2);
    assert_str_equal(got.hosts[1], "n2");
    assert_str_equal(got.request, "what?");
    // Truncated before the request begins, it is refused.
    for (size_t size = 0; size < b.size - ask.request.size; size++)
        assert_int_equal(wire_ask_read(str_slice(buf_str(&b), 0, size), &arena, &got), -EBADMSG);
    b.size = 0;
    struct wire_missing m = {STR("n7"), WIRE_LATE, STR("why")}, back;
    wire_missing_write(&m, &b);
    wire_missing_write(&m, &b);
    struct bytes rest = bytes_of(b.data, b.size);
    assert_int_equal(wire_missing_read(&rest, &back), 0);
    assert_int_equal(wire_missing_read(&rest, &back), 0);
    assert_str_equal(back.host, "n7");
    assert_int_equal(back.reason, WIRE_LATE);
    assert_int_equal(wire_missing_read(&rest, &back), -EBADMSG);
    b.size = 0;
    struct wire_end end;
    wire_end_write(&(struct wire_end){-ETIMEDOUT, STR("slow")}, &b);
    assert_int_equal(wire_end_read(buf_str(&b), &end), 0);
    assert_int_equal(end.code, -ETIMEDOUT);
    assert_int_equal(wire_end_read(str_slice(buf_str(&b), 0, b.size - 1), &end), -EBADMSG);
    b.size = 0;
    wire_end_write(&(struct wire_end){5, STR("no errno")}, &b);
    assert_int_equal(wire_end_read(buf_str(&b), &end), -EBADMSG);
    b.size = 0;
    struct wire_pong pong = {{1, -2}, 3, INT64_MIN}, pong2;
    wire_pong_write(&pong, &b);
    assert_int_equal(wire_pong_read(buf_str(&b), &pong2), 0);
    assert_memory_equal(&pong, &pong2, sizeof pong);
    buf_add_char(&b, 0);
    assert_int_equal(wire_pong_read(buf_str(&b), &pong2), -EBADMSG);
    buf_free(&b);
    arena_free(&arena);
}

static void pieces_lie_within_the_window(void **state)
{
    (void)state;
    struct buf b = {0};
    struct wire_window w = {{0, WIRE_LAID_MAX, {1, 2, 3}}, STR("where")}, back;
    struct wire_use use;
    static const struct {
        uint32_t offset, size;
        bool good;
    } cases[] = {{0, 1, true},
                 {WIRE_WINDOW_BYTES - 1, 1, true},
                 {WIRE_WINDOW_BYTES - WIRE_LAID_MAX, WIRE_LAID_MAX, true},
                 {0, 0, false},
                 {0, WIRE_LAID_MAX + 1, false},
                 {WIRE_WINDOW_BYTES, 1, false},
                 {WIRE_WINDOW_BYTES - 1, 2, false},
                 {UINT32_MAX, 1, false},
                 {1, UINT32_MAX, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wire_laid laid = {cases[i].offset, cases[i].size, {9}}, read;
        b.size = 0;
        wire_laid_write(&laid, &b);
        assert_int_equal(wire_laid_read(buf_str(&b), &read), cases[i].good ? 0 : -EBADMSG);
        assert_int_equal(wire_laid_read(str_slice(buf_str(&b), 0, b.size - 1), &read), -EBADMSG);
        if (cases[i].good)
            assert_memory_equal(&laid, &read, sizeof read);
    }
    b.size = 0;
    wire_window_write(&w, &b);
    assert_int_equal(wire_window_read(buf_str(&b), &back), 0);
    assert_memory_equal(&w.first, &back.first, sizeof w.first);
    assert_str_equal(back.description, "where");
    b.size = 0;
    wire_use_write(&(struct wire_use){true, STR("way")}, &b);
    assert_int_equal(wire_use_read(buf_str(&b), &use), 0);
    assert_true(use.used);
    assert_str_equal(use.text, "way");
    b.data[0] = 2;
    assert_int_equal(wire_use_read(buf_str(&b), &use), -EBADMSG);
    buf_free(&b);
}

static void the_shortest_round_trip_gives_the_offset(void **state)
{
    (void)state;
    struct clock_offset c = {0};
    int64_t offset, error;
    assert_false(clock_offset_get(&c, &offset, &error));
    // Their clock is 1000 ahead. The first answer was delayed on its way back, the second one was
    // not.
    clock_offset_add(&c, 0, 1010, 1020, 520);
    assert_true(clock_offset_get(&c, &offset, &error));
    assert_true(offset - error <= 1000 && 1000 <= offset + error);
    assert_int_equal(error, 255);
    clock_offset_add(&c, 1000, 2010, 2020, 1030);
    clock_offset_get(&c, &offset, &error);
    assert_int_equal(offset, 1000);
    assert_int_equal(error, 10);
    // An answer before its request, and numbers that cannot be subtracted, are not samples.
    clock_offset_add(&c, 100, 1, 2, 50);
    clock_offset_add(&c, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX);
    clock_offset_get(&c, &offset, &error);
    assert_int_equal(offset, 1000);
    // The best sample is forgotten after this number of others.
    for (int i = 0; i < CLOCK_OFFSET_SAMPLES; i++)
        clock_offset_add(&c, 0, 2050, 2050, 100);
    clock_offset_get(&c, &offset, &error);
    assert_int_equal(offset, 2000);
    assert_int_equal(error, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_with_the_key_is_welcomed),
        cmocka_unit_test(abilities_are_exchanged_if_both_ends_have_them),
        cmocka_unit_test(macs_are_those_of_the_rfc),
        cmocka_unit_test(both_ends_see_a_wrong_key),
        cmocka_unit_test(an_unknown_role_is_refused),
        cmocka_unit_test(refuses_a_replay),
        cmocka_unit_test(refuses_a_reflection),
        cmocka_unit_test(sees_every_changed_bit),
        cmocka_unit_test(refuses_other_jobs_and_bad_names),
        cmocka_unit_test(headers_are_checked_by_stage_and_side),
        cmocka_unit_test(messages_are_read_completely_or_not_at_all),
        cmocka_unit_test(pieces_lie_within_the_window),
        cmocka_unit_test(the_shortest_round_trip_gives_the_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
