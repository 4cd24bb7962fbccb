// The pieces in a link's window, and how a hub fetches them: without a network. And the option
// --transport.
#include "unit/wire/net.h"
#include "wire/fetches.h"
#include "wire/window.h"

static void a_window_is_a_ring(void **state)
{
    (void)state;
    static char memory[WIRE_WINDOW_BYTES], data[WIRE_LAID_MAX + 1];
    struct window w = {.memory = memory};
    struct window_piece p;
    // A piece has a maximum size; the next one takes the rest.
    assert_true(window_lay(&w, 1, (struct str){data, sizeof data}, &p));
    assert_int_equal(p.size, WIRE_LAID_MAX);
    assert_false(window_taken(&w, 1)); // not a whole piece
    assert_true(window_taken(&w, WIRE_LAID_MAX));
    assert_false(window_taken(&w, 1)); // nothing is stored there
    // Pieces of any size fill the window to its limits: it never holds more bytes or more pieces
    // than it may.
    uint64_t random = 7, laid = 0, taken = 0;
    for (int i = 0; i < 200000; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        size_t size =
            WIRE_LAID_MIN + (size_t)(random >> 33) % (i % 3 ? 100 : WIRE_LAID_MAX - WIRE_LAID_MIN);
        if (window_lay(&w, (uint32_t)i, (struct str){data, size}, &p)) {
            assert_true(p.offset + p.size <= WIRE_WINDOW_BYTES && p.size > 0 && p.size <= size);
            laid += p.size;
        } else {
            taken += w.pieces[w.first].size;
            assert_true(window_taken(&w, w.pieces[w.first].size));
        }
        assert_int_equal(w.used, laid - taken);
        assert_true(w.used <= WIRE_WINDOW_BYTES && w.count <= WINDOW_PIECES_MAX);
    }
}

static int meet_anybody(struct wire_bulk *b, struct str description, struct wire_bulk_peer **out,
                        struct error *e)
{
    (void)description, (void)e;
    *out = (struct wire_bulk_peer *)b;
    return 0;
}

static struct wire_fetch *fetched[4];
static size_t fetched_count;

static void remember(struct wire_fetch *f)
{
    fetched[fetched_count++] = f;
}

static void forget(struct wire_fetch *f)
{
    for (size_t i = 0; i < fetched_count; i++)
        if (fetched[i] == f)
            fetched[i] = NULL;
}

static void part_nobody(struct wire_bulk_peer *p)
{
    (void)p;
}

static void no_news(void *user)
{
    (void)user;
}

static void untaken_pieces_are_sent_again(void **state)
{
    (void)state;
    static const struct wire_bulk_row row = {
        .meet = meet_anybody, .part = part_nobody, .fetch = remember, .give_up = forget};
    static const uint8_t key[WIRE_KEY_BYTES];
    struct wire_mac_key macs;
    struct wire_bulk bulk = {.row = &row};
    struct wire_fetches f = {.news = no_news};
    struct wire_header h = {.type = WIRE_PART}, got;
    struct wire_laid laid = {.size = 4};
    struct str payload;
    bool kept;
    assert_int_equal(wire_fetches_begin(&f, &bulk, STR(""), key, NULL), 0);
    // Three pieces and an END after them; the second one is complete, the first one fails, the
    // third one is under way.
    wire_mac_key_set(&macs, key);
    for (h.id = 1; h.id <= 3; h.id++) {
        wire_mac(&macs, h.id - 1, (struct str){0}, STR("data"), laid.mac);
        assert_int_equal(wire_fetches_laid(&f, &h, &laid), 0);
    }
    h = (struct wire_header){.type = WIRE_END, .id = 4};
    assert_int_equal(wire_fetches_hold(&f, &h, STR(""), &kept), 0);
    assert_true(kept);
    fetched[1]->done(fetched[1], 0, "data");
    assert_false(wire_fetches_next(&f, &got, &payload)); // nothing overtakes it
    fetched[0]->done(fetched[0], -EIO, NULL);
    assert_true(f.broken);
    assert_null(fetched[2]); // given up
    assert_int_equal(wire_fetches_taken(&f, true), 0);
    wire_fetches_refill(&f, false);
    // They are sent again, oldest first, and complete.
    for (uint32_t id = 1; id <= 3; id++) {
        h = (struct wire_header){.type = WIRE_AGAIN, .id = id};
        assert_int_equal(wire_fetches_again(&f, &h, STR("dat")), -EBADMSG);
        assert_int_equal(wire_fetches_again(&f, &h, STR("DATA")), 0);
    }
    assert_int_equal(wire_fetches_again(&f, &h, STR("DATA")), -EBADMSG);
    for (uint32_t id = 1; id <= 3; id++) {
        assert_true(wire_fetches_next(&f, &got, &payload));
        assert_int_equal(got.id, id);
        assert_int_equal(got.type, WIRE_PART);
        assert_str_equal(payload, "DATA");
    }
    assert_true(wire_fetches_next(&f, &got, &payload));
    assert_int_equal(got.type, WIRE_END);
    assert_false(wire_fetches_next(&f, &got, &payload));
    // A size above that of a window is invalid.
    laid.size = WIRE_LAID_MAX;
    for (size_t lying = 0; lying < WIRE_WINDOW_BYTES; lying += WIRE_LAID_MAX)
        assert_int_equal(wire_fetches_laid(&f, &h, &laid), 0);
    laid.size = 1;
    assert_int_equal(wire_fetches_laid(&f, &h, &laid), -EBADMSG);
    // The number of frames that wait for it is limited, too.
    static char frame[WIRE_PART_MAX];
    int r = 0;
    size_t held = 0;
    for (h = (struct wire_header){.type = WIRE_PART, .size = WIRE_PART_MAX}; r == 0;
         held += sizeof frame)
        r = wire_fetches_hold(&f, &h, (struct str){frame, sizeof frame}, &kept);
    assert_int_equal(r, -ENOBUFS);
    assert_true(held <= FETCHES_HELD_MAX + sizeof frame);
    wire_fetches_end(&f);
}

// A piece's mac belongs to its number, so an older piece of the same bytes is not accepted.
static void a_piece_has_the_mac_of_its_number(void **state)
{
    (void)state;
    static const struct wire_bulk_row row = {
        .meet = meet_anybody, .part = part_nobody, .fetch = remember, .give_up = forget};
    static const uint8_t key[WIRE_KEY_BYTES] = {7};
    for (int replayed = 0; replayed < 2; replayed++) {
        struct wire_mac_key macs;
        struct wire_bulk bulk = {.row = &row};
        struct wire_fetches f = {.news = no_news};
        struct wire_header h = {.type = WIRE_PART};
        struct wire_laid laid = {.size = 4};
        fetched_count = 0;
        wire_mac_key_set(&macs, key);
        assert_int_equal(wire_fetches_begin(&f, &bulk, STR(""), key, NULL), 0);
        for (h.id = 1; h.id <= 2; h.id++) {
            if (h.id == 1 || !replayed)
                wire_mac(&macs, h.id - 1, (struct str){0}, STR("data"), laid.mac);
            assert_int_equal(wire_fetches_laid(&f, &h, &laid), 0);
        }
        fetched[1]->done(fetched[1], 0, "data");
        assert_int_equal(f.broken, replayed);
        wire_fetches_end(&f);
    }
}

static void invalid_options_have_a_message(void **state)
{
    (void)state;
    struct error e;
    struct wire_loop *l = net_loop();
    struct wire_bulk *b = NULL;
    static const char *const good[] = {"auto", "tcp", "fabric", "fabric:tcp",
                                       "fabric:verbs;ofi_rxm"};
    static const char *const bad[] = {"", "udp", "fabric:", "fabric:a b", "tcp:fabric"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(wire_transport_check(good[i], &e), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(wire_transport_check(bad[i], &e), -EINVAL);
    // A requested transport that is missing is an error; with auto, it is not.
    assert_true(wire_bulk_open(l, "fabric:nonsense", WIRE_HUB, NULL, &b, &e) < 0);
    assert_non_null(strstr(e.text, "--transport=fabric:nonsense"));
    assert_null(b);
    assert_int_equal(wire_bulk_open(l, "auto", WIRE_HUB, NULL, &b, &e), 0);
    wire_bulk_close(b);
    assert_int_equal(wire_bulk_open(l, "tcp", WIRE_LINK, NULL, &b, &e), 0);
    assert_null(b);
    wire_loop_stop(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_a_ring),
        cmocka_unit_test(untaken_pieces_are_sent_again),
        cmocka_unit_test(a_piece_has_the_mac_of_its_number),
        cmocka_unit_test(invalid_options_have_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
