// Reads data from other machines: bytes that a hub or a link receives from an unknown peer,
// payloads of messages, plans, partial results, lists. The first byte of the input chooses the
// kind.
#include "ask/copy_sums.h"
#include "ask/copy_wire.h"
#include "ask/host_filter.h"
#include "ask/lists_wire.h"
#include "ask/recent_wire.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"
#include "wire/forward.h"
#include "wire/handshake.h"
#include "wire/session.h"

#include "fuzz_wire_pieces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct wire_loop *loop;
static char folder[64]; // the folder for copies

// ---- a connection without a network ----

static const struct wire_channel_events *events;
static void *events_user;
static struct wire_session *session;

static void take_events(struct wire_channel *c, const struct wire_channel_events *e, void *user)
{
    (void)c;
    events = e;
    events_user = user;
}

static int connect_nowhere(struct wire_loop *l, const char *host, int port,
                           const struct wire_channel_events *e, void *user,
                           struct wire_channel **out, struct error *error)
{
    (void)l, (void)host, (void)port, (void)error;
    *out = (struct wire_channel *)&session;
    take_events(*out, e, user);
    return 0;
}

static void drop_data(struct wire_channel *c, char *data, size_t size)
{
    (void)c, (void)size;
    free(data);
}

static size_t nothing_queued(const struct wire_channel *c)
{
    (void)c;
    return 0;
}

static void close_nothing(struct wire_channel *c)
{
    (void)c;
}

static const struct wire_transport nowhere = {.name = "nowhere",
                                              .connect = connect_nowhere,
                                              .events_set = take_events,
                                              .send = drop_data,
                                              .queued = nothing_queued,
                                              .close = close_nothing};

static void on_opened(void *user)
{
    (void)user;
    abort(); // a peer without the key must not complete the handshake
}

static void on_frame(void *user, const struct wire_header *h, struct str payload)
{
    (void)user, (void)h, (void)payload;
    abort();
}

static void on_closed(void *user, int why, const char *text)
{
    (void)user, (void)why;
    if (!text || !*text)
        abort();
    wire_session_close(session, NULL);
    session = NULL;
}

struct input {
    const uint8_t *data;
    size_t size;
};

static void be_a_stranger(void *user)
{
    const struct input *in = user;
    struct wire_settings settings = {.job = STR("job"), .key = {1, 2, 3}};
    bool hub = in->data[0] & 1;
    size_t piece = (size_t)(in->data[0] >> 1) + 1;
    struct wire_session_options o = {.loop = loop,
                                     .settings = &settings,
                                     .transport = &nowhere,
                                     .side = hub ? WIRE_HUB : WIRE_LINK,
                                     .self = {.host = STR("here"), .job = STR("job")},
                                     .events = {on_opened, on_frame, NULL, on_closed}};
    if (hub ? wire_session_accept(&o, (struct wire_channel *)&session, &session)
            : wire_session_connect(&o, "there", 1, &session, NULL))
        abort();
    if (!hub)
        events->opened(events_user);
    for (size_t at = 1; at < in->size && session; at += piece) {
        size_t n = in->size - at < piece ? in->size - at : piece;
        events->received(events_user, (struct str){(const char *)in->data + at, n});
    }
    wire_session_close(session, NULL);
    session = NULL;
}

// ---- a client that knows the key ----

static int no_random(void *user, uint8_t *out, size_t size)
{
    (void)user;
    memset(out, 7, size);
    return 0;
}

static bool forwards; // a forward exists and has not ended

static void on_forward_ended(void *user, struct wire_forward *f, const char *why)
{
    (void)user, (void)f, (void)why;
    if (!forwards)
        abort();
    forwards = false;
}

static void on_proved(void *user)
{
    *(bool *)user = true;
}

static void say_frame(enum wire_type type, struct str payload, struct wire_mac_key *key,
                      uint64_t count)
{
    struct buf frame = {0};
    uint8_t header[WIRE_HEADER_BYTES], mac[WIRE_MAC_BYTES];
    wire_header_write(&(struct wire_header){.size = (uint32_t)payload.size, .type = type}, header);
    buf_add(&frame, header, sizeof header);
    buf_add_str(&frame, payload);
    if (key) {
        wire_mac(key, count, (struct str){(char *)header, sizeof header}, payload, mac);
        buf_add(&frame, mac, sizeof mac);
    }
    events->received(events_user, buf_str(&frame));
    buf_free(&frame);
}

// Brings the hub's end of a session through the handshake. Both sides use the same random numbers,
// so a second handshake gives the hub's answers. This is needed because nothing reads the output of
// the session.
static void prove(const struct wire_settings *settings, struct wire_handshake *link)
{
    struct wire_handshake hub;
    struct error e;
    struct buf hello = {0}, challenge = {0}, proof = {0}, nothing = {0};
    struct wire_identity self = {.host = STR("here"), .job = STR("job")},
                         client = {
                             .role = WIRE_ROLE_CLIENT, .host = STR("there"), .job = STR("job")};
    if (wire_handshake_begin(&hub, WIRE_HUB, &self, settings, &nothing, &e) ||
        wire_handshake_begin(link, WIRE_LINK, &client, settings, &hello, &e) ||
        wire_handshake_take(&hub, buf_str(&hello), &challenge, &e) ||
        wire_handshake_take(link, buf_str(&challenge), &proof, &e))
        abort();
    say_frame(WIRE_HELLO, buf_str(&hello), NULL, 0);
    say_frame(WIRE_PROOF, buf_str(&proof), NULL, 0);
    buf_free(&hello);
    buf_free(&challenge);
    buf_free(&proof);
}

// Acts as a client that knows the key. A command is u8 type, u16 size, and the bytes of a frame,
// which gets a valid MAC. With type 0, the server reads. Whatever arrives, the forward ends at most
// once, and passes on only bytes that the client sent.
static void be_a_client(void *user)
{
    const struct input *in = user;
    static uint8_t filler[WIRE_PART_MAX];
    struct wire_settings settings = {.job = STR("job"), .key = {1, 2, 3}, .random = no_random};
    struct wire_handshake link;
    struct wire_mac_key macs;
    bool proved = false;
    int pair[2];
    struct wire_session_options o = {.loop = loop,
                                     .settings = &settings,
                                     .transport = &nowhere,
                                     .side = WIRE_HUB,
                                     .self = {.host = STR("here"), .job = STR("job")},
                                     .events = {on_proved, on_frame, NULL, on_closed},
                                     .user = &proved};
    if (wire_session_accept(&o, (struct wire_channel *)&session, &session))
        abort();
    prove(&settings, &link);
    wire_mac_key_set(&macs, link.send_key);
    struct wire_forward *f;
    struct wire_forward_options forward = {.loop = loop,
                                           .settings = &settings,
                                           .heartbeat_ms = 1000,
                                           .dead_ms = 10000,
                                           .ended = on_forward_ended};
    if (!proved || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ||
        wire_forward_start(&forward, session, pair[0], &f))
        abort();
    forwards = true;
    size_t said = 0, read = 0;
    uint64_t count = 0;
    struct bytes b = bytes_of(in->data, in->size);
    while (bytes_left(&b) && forwards) {
        unsigned type = bytes_u8(&b), size = bytes_u16(&b);
        if (type == WIRE_NOTHING) {
            ssize_t n = recv(pair[1], filler, sizeof filler, 0);
            read += n > 0 ? (size_t)n : 0;
            if (read > said)
                abort();
            continue;
        }
        const struct wire_frame_row *row = wire_frame_row((enum wire_type)type);
        if (!row || row->opening || !(row->from & 1 << WIRE_LINK) || size > row->size_max)
            continue;
        said += type == WIRE_STREAM ? size : 0;
        // The contents of a STREAM do not matter. Other frames have bytes of the input, unless it
        // has too few.
        struct str payload = {(char *)filler, size};
        if (type != WIRE_STREAM && size <= bytes_left(&b))
            payload = bytes_take(&b, size);
        say_frame((enum wire_type)type, payload, &macs, count++);
    }
    if (forwards)
        wire_forward_stop(f, NULL);
    forwards = false;
    session = NULL;
    close(pair[1]);
}

// ---- messages ----

static bool is_short(void *user, struct str host)
{
    (void)user;
    return host.size < 3;
}

// Checks that the kept periods of the sums and the others cover all of time, without overlap.
static void read_sums(struct str text)
{
    static struct ask_copy_sums ours, theirs, again;
    struct ask_copy_kept kept;
    struct ask_copy_stretch stretches[ASK_COPY_STRETCHES_MAX];
    struct buf out = {0};
    if (ask_copy_sums_read(text, &theirs))
        return;
    ask_copy_sums_write(&theirs, &out);
    if (ask_copy_sums_read(buf_str(&out), &again) || again.count != theirs.count)
        abort();
    buf_free(&out);
    ours = theirs;
    for (uint32_t i = 0; i < ours.count; i++)
        ours.points[i] &= ~(uint64_t)1;
    ask_copy_sums_compare(&ours, &theirs, &kept);
    bool kept_next = ask_copy_is_kept(kept.points, &ours, 0);
    size_t at[2] = {0}, count[2];
    struct ask_copy_stretch both[2][ASK_COPY_STRETCHES_MAX];
    for (int k = 0; k < 2; k++) {
        count[k] = ask_copy_stretches(&ours, kept.points, k, INT64_MIN, INT64_MAX, stretches);
        memcpy(both[k], stretches, sizeof stretches);
    }
    int64_t next = INT64_MIN;
    for (bool k = kept_next; at[k] < count[k]; k = !k) {
        const struct ask_copy_stretch *s = &both[k][at[k]++];
        if (s->from_ns != next || s->to_ns < s->from_ns)
            abort();
        if (s->to_ns == INT64_MAX)
            break;
        next = s->to_ns + 1;
    }
    if (at[0] != count[0] || at[1] != count[1])
        abort();
}

static void read_messages(struct str payload)
{
    struct arena arena = arena_limited(1 << 20);
    struct wire_welcome welcome;
    struct wire_ping ping;
    struct wire_pong pong;
    struct wire_ask ask;
    struct wire_missing missing;
    struct wire_end end;
    uint32_t credit;
    struct wire_laid laid;
    struct wire_window window;
    struct wire_use use;
    if (wire_laid_read(payload, &laid) == 0 && laid.offset + laid.size > WIRE_WINDOW_BYTES)
        abort();
    wire_window_read(payload, &window);
    wire_use_read(payload, &use);
    wire_welcome_read(payload, &welcome);
    wire_ping_read(payload, &ping);
    wire_pong_read(payload, &pong);
    wire_credit_read(payload, &credit);
    wire_end_read(payload, &end);
    if (wire_ask_read(payload, &arena, &ask) == 0) {
        struct buf again = {0};
        wire_ask_write(&ask, &again);
        if (again.size > payload.size)
            abort(); // a number in the input may be longer than necessary, but not shorter
        buf_free(&again);
    }
    struct bytes rest = bytes_of(payload.data, payload.size);
    while (bytes_left(&rest) && wire_missing_read(&rest, &missing) == 0)
        ;
    struct str room[WIRE_HOST_SET_MAX], node;
    struct wire_host_set held, sum = {0};
    rest = bytes_of(payload.data, payload.size);
    while (bytes_left(&rest) && wire_host_set_read(&rest, room, &node, &held) == 0) {
        wire_host_set_merge(&sum, &held);
        if (wire_host_set_merge(&sum, &held))
            abort(); // a second merge of the same set must add nothing
    }
    for (unsigned question = 0; question <= ASK_QUESTION_COUNT; question++) {
        struct wire_host_filter about;
        ask_host_filter_read(&about, question, payload);
        ask_host_filter_concerns(&about, STR("n1"), &sum);
        ask_host_filter_free(&about);
    }
    wire_host_set_free(&sum);
    struct ask_names_request names;
    struct query_series_filter series;
    struct store_event_selection wanted;
    struct ask_copy_request copy;
    struct ask_recent_request recent;
    struct buf narrow = {0};
    if (ask_copy_request_read(payload, &arena, &copy) !=
            ask_copy_request_narrow(payload, is_short, NULL, &narrow) ||
        narrow.size > payload.size)
        abort();
    buf_free(&narrow);
    for (size_t i = 0; i < copy.known_count; i++)
        read_sums(copy.known[i].sums);
    ask_names_request_read(payload, &names);
    ask_series_request_read(payload, &arena, &series);
    ask_events_request_read(payload, &wanted);
    ask_recent_request_read(payload, &arena, &recent);
    arena_free(&arena);
}

static void read_plan(struct str payload)
{
    struct arena arena = arena_limited(1 << 20);
    struct query q;
    struct query_limits limits;
    struct error e;
    if (query_plan_read(payload, &arena, &q, &limits, &e) == 0) {
        struct query again;
        struct query_limits same;
        struct buf out = {0};
        query_plan_write(&q, &limits, &out);
        if (query_plan_read(buf_str(&out), &arena, &again, &same, &e) ||
            !str_eq(again.metric, q.metric) || again.filter_count != q.filter_count ||
            again.start_ns != q.start_ns || same.points_max != limits.points_max)
            abort();
        buf_free(&out);
    }
    arena_free(&arena);
}

// Passes records, each after its u16 size, to a gather for one of the plans. Then it makes a
// result, or records again.
static void gather_records(const uint8_t *data, size_t size)
{
    static const char *const plans[] = {"sum:m{a=*}",      "sum:1s-avg:m", "p90:1s-avg-nan:m",
                                        "first:1s-last:m", "none:m",       "dev:rate:m",
                                        "diff:0all-avg:m", "avg:1ms-avg:m"};
    struct arena arena = {0};
    struct query q = {.end_ns = 100 * (int64_t)NS_PER_S};
    struct query_limits limits = {.memory_bytes = 16 << 20,
                                  .deadline_ns = clock_monotonic_ns() + 2 * (int64_t)NS_PER_S};
    struct query_gather *g;
    struct error e;
    const char *plan = plans[data[0] % (sizeof plans / sizeof *plans)];
    bool again = data[0] & 128;
    if (query_parse_m(str_of(plan), &arena, &q, &e) || query_gather_create(&q, &limits, &g, &e))
        abort();
    struct bytes b = bytes_of(data + 1, size - 1);
    while (bytes_left(&b)) {
        struct str record = bytes_take(&b, bytes_u16(&b));
        e.text[0] = 0;
        if (!b.failed && query_record_take(&g, 1, record, &e) && !e.text[0])
            abort();
    }
    if (again) {
        struct buf out = {0};
        size_t next = 0;
        while (query_record_make(&g, 1, &next, &out, &e) > 0)
            ;
        buf_free(&out);
    } else {
        struct query_result result;
        query_gather_finish(g, &arena, &result, &e);
    }
    query_gather_destroy(g);
    arena_free(&arena);
}

static void read_lists(struct str record)
{
    struct arena arena = arena_limited(8 << 20);
    struct ask_series_list series = {.arena = &arena, .most = 1000};
    struct ask_event_list list = {.arena = &arena, .most = 1000};
    struct ask_status status;
    struct ask_recent recent;
    ask_series_take(&series, record);
    ask_events_take(&list, record);
    ask_status_read(record, &arena, &status);
    ask_recent_read(record, &arena, &recent);
    arena_free(&arena);
}

// Passes records, each after its u16 size, to a copy.
static void copy_records(const uint8_t *data, size_t size)
{
    struct ask_copy *c;
    struct error e;
    struct buf request = {0};
    if (ask_copy_create(&(struct ask_copy_options){.folder = folder, .to_ns = INT64_MAX}, &c, &e) ||
        ask_copy_ask(c, NULL, 0, &request, &e))
        abort();
    buf_free(&request);
    struct bytes b = bytes_of(data, size);
    while (bytes_left(&b)) {
        struct str record = bytes_take(&b, bytes_u16(&b));
        e.text[0] = 0;
        if (!b.failed && ask_copy_take(c, record, &e) && !e.text[0])
            abort();
    }
    ask_copy_destroy(c);
}

static char there[96]; // an existing copy of the host "n"

static void remove_folder(void)
{
    unlink(there);
    rmdir(folder);
}

static void make_copy(void)
{
    struct store_label meta[] = {{STR("host"), STR("n")},
                                 {STR("copied_version"), STR("1")},
                                 {STR("copied_range"), STR("0..9223372036854775807")},
                                 {STR("copied_from"), STR("n")}};
    struct store *store;
    uint32_t metric, series;
    snprintf(there, sizeof there, "%s/n.sonde", folder);
    if (mkdir(folder, 0700) ||
        store_open(there, &(struct store_options){.meta = meta, .meta_count = 4}, &store, NULL) ||
        store_define_metric(store, &(struct store_metric){.name = STR("m")}, &metric) ||
        store_define_series(store, metric, NULL, 0, &series))
        abort();
    for (int64_t t = 0; t < 1000; t++)
        store_append(store, series, t, (double)t);
    if (store_close(store, NULL))
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    struct error e;
    log_setup(LOG_ERROR, "fuzz");
    snprintf(folder, sizeof folder, "/tmp/sonde-fuzz-wire-%d", (int)getpid());
    atexit(remove_folder);
    make_copy();
    if (wire_loop_start(&loop, &e))
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct input rest = {data + 1, size - 1};
    struct str text = {(const char *)rest.data, rest.size};
    switch (data[0] % 8) {
    case 0:
        wire_loop_call(loop, be_a_stranger, &rest);
        break;
    case 1:
        read_messages(text);
        break;
    case 2:
        read_plan(text);
        break;
    case 3:
        gather_records(rest.data, rest.size);
        break;
    case 4:
        copy_records(rest.data, rest.size);
        break;
    case 6:
        lay_pieces(text);
        break;
    case 7:
        wire_loop_call(loop, be_a_client, &rest);
        break;
    default:
        read_lists(text);
    }
    return 0;
}
