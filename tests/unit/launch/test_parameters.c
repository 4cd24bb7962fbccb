// The parameters of a run: random annotations, compared with a separate table, and the limits.
#include "base/escape.h"
#include "launch/parameters.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

static void add(struct parameters *p, const char *text, int64_t t_ns)
{
    const struct store_label labels[] = {{STR("host"), STR("n1")}, {STR("sonde"), STR("config")}};
    const struct store_event event = {.kind = STORE_ANNOTATION,
                                      .start_ns = t_ns,
                                      .end_ns = t_ns,
                                      .text = str_of(text),
                                      .labels = labels,
                                      .label_count = 2};
    parameters_add_event(p, &event);
}

static const char *value_of(const struct parameters *p, const char *key)
{
    return json_string_value(json_object_get(p->values, key));
}

static void the_last_value_counts(void **state)
{
    (void)state;
    enum { KEYS = 20, WORDS = 2000 };
    struct parameters p = {0};
    struct {
        int64_t t_ns;
        char value[32];
    } last[KEYS] = {{0}};
    uint64_t random = test_seed(1);
    for (unsigned i = 0; i < WORDS * test_rounds(); i++) {
        size_t key = test_random(&random) % KEYS;
        int64_t t_ns = 1 + (int64_t)(test_random(&random) % 4096);
        char value[32], text[128];
        struct buf word = {0};
        snprintf(value, sizeof value, "%s%u\n\\", i % 2 ? "a b" : "", i);
        escape_word(&word, str_of(value));
        snprintf(text, sizeof text, "k%zu=%s", key, buf_cstr(&word));
        buf_free(&word);
        add(&p, text, t_ns);
        if (t_ns >= last[key].t_ns) {
            last[key].t_ns = t_ns;
            memcpy(last[key].value, value, sizeof value);
        }
    }
    for (size_t key = 0; key < KEYS; key++) {
        char name[16];
        snprintf(name, sizeof name, "k%zu", key);
        if (last[key].t_ns)
            assert_string_equal(value_of(&p, name), last[key].value);
        else
            assert_null(value_of(&p, name));
    }
    assert_int_equal(p.lost, 0);
    parameters_free(&p);
}

static void only_marked_annotations(void **state)
{
    (void)state;
    struct parameters p = {0};
    const struct store_label other = {STR("sonde"), STR("other")};
    const struct store_label mark = {STR("sonde"), STR("config")};
    struct store_event event = {
        .kind = STORE_ANNOTATION, .text = STR("a=1"), .labels = &other, .label_count = 1};
    parameters_add_event(&p, &event);
    event.label_count = 0;
    parameters_add_event(&p, &event);
    event = (struct store_event){
        .kind = STORE_SPAN, .text = STR("a=1"), .labels = &mark, .label_count = 1};
    parameters_add_event(&p, &event);
    json_t *about = json_object();
    parameters_describe(&p, about);
    assert_int_equal(json_object_size(about), 0);
    json_decref(about);
    parameters_free(&p);
}

static void malformed_words_are_left_out(void **state)
{
    (void)state;
    struct parameters p = {0};
    add(&p, "word =1 a=1 \xff=2 b=\xff c= =", 1);
    assert_string_equal(value_of(&p, "a"), "1");
    assert_string_equal(value_of(&p, "c"), "");
    assert_int_equal(json_object_size(p.values), 2);
    assert_int_equal(p.lost, 5);
    parameters_free(&p);
}

static void limits(void **state)
{
    (void)state;
    struct parameters p = {0};
    char text[STORE_TEXT_MAX], value[PARAMETERS_VALUE_MAX + 2];
    for (int i = 0; i < PARAMETERS_MAX + 7; i++) {
        snprintf(text, sizeof text, "k%d=%d", i, i);
        add(&p, text, 1);
    }
    assert_int_equal(json_object_size(p.values), PARAMETERS_MAX);
    assert_int_equal(p.lost, 7);
    add(&p, "k0=again", 2); // an existing key can be replaced
    assert_string_equal(value_of(&p, "k0"), "again");
    memset(value, 'x', sizeof value);
    value[PARAMETERS_VALUE_MAX + 1] = 0;
    snprintf(text, sizeof text, "k1=%s", value);
    add(&p, text, 2);
    assert_string_equal(value_of(&p, "k1"), "1");
    assert_int_equal(p.lost, 8);
    value[PARAMETERS_VALUE_MAX] = 0;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        snprintf(text, sizeof text, "k%d=%s", i, value);
        add(&p, text, 3);
    }
    size_t bytes = 0;
    const char *key;
    json_t *kept;
    json_object_foreach(p.values, key, kept)
    {
        bytes += strlen(key) + json_string_length(kept);
    }
    assert_int_equal(bytes, p.bytes);
    assert_true(bytes <= PARAMETERS_BYTES && bytes > PARAMETERS_BYTES - PARAMETERS_VALUE_MAX);
    json_t *about = json_object();
    parameters_describe(&p, about);
    assert_int_equal(json_integer_value(json_object_get(about, "config_lost")), p.lost);
    json_decref(about);
    parameters_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_value_counts),
        cmocka_unit_test(only_marked_annotations),
        cmocka_unit_test(malformed_words_are_left_out),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
