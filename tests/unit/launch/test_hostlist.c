#include "launch/hostlist.h"
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void expect(const char *list, const char *names)
{
    struct hosts h = {0};
    struct error e = {0};
    if (hostlist_parse(str_of(list), &h, &e) != 0)
        fail_msg("%s: %s", list, e.text);
    struct buf text = {0};
    for (size_t i = 0; i < h.count; i++)
        buf_printf(&text, "%s%s", i ? " " : "", h.names[i]);
    assert_string_equal(buf_cstr(&text), names);
    buf_free(&text);
    hosts_free(&h);
}

static void lists(void **state)
{
    (void)state;
    expect("n1", "n1");
    expect("n1,n2", "n1 n2");
    expect("n[1-3]", "n1 n2 n3");
    expect("n[1-3,07,10-12]x[8-9]",
           "n1x8 n1x9 n2x8 n2x9 n3x8 n3x9 n07x8 n07x9 n10x8 n10x9 n11x8 n11x9 n12x8 n12x9");
    expect("n[08-10]-ib,login", "n08-ib n09-ib n10-ib login");
    expect("n[001-003]", "n001 n002 n003");
    expect("n[9-11]", "n9 n10 n11");
    expect("a[1],b[2].x", "a1 b2.x");
    expect(" n1, n2 \n", "n1 n2");
    expect("n2,n1,n2,n[1-3]", "n2 n1 n3"); // without duplicates, in the order of the first mention
    expect("10.77.0.11,fe80::1", "10.77.0.11 fe80::1");
}

static void refuse(const char *list, int code, const char *words)
{
    struct hosts h = {0};
    struct error e = {0};
    assert_int_equal(hostlist_parse(str_of(list), &h, &e), code);
    if (!strstr(e.text, words))
        fail_msg("%s: \"%s\" does not say \"%s\"", list, e.text, words);
    hosts_free(&h);
}

static void faults(void **state)
{
    (void)state;
    refuse("", -EINVAL, "empty");
    refuse("n1,,n2", -EINVAL, "not the name");
    refuse("n1,", -EINVAL, "not the name");
    refuse("n[1-3", -EINVAL, "not closed");
    refuse("n1-3]", -EINVAL, "not the name");
    refuse("n[3-1]", -EINVAL, "backwards");
    refuse("n[1-]", -EINVAL, "no end");
    refuse("n[]", -EINVAL, "number is missing");
    refuse("n[1,,2]", -EINVAL, "number is missing");
    refuse("n[a-b]", -EINVAL, "number is missing");
    refuse("n[1x3]", -EINVAL, "not a range");
    refuse("n[1234567890]", -EINVAL, "not a range");
    refuse("n[[1]]", -EINVAL, "number is missing");
    // Names become arguments of ssh and srun.
    refuse("-oProxyCommand=x", -EINVAL, "not the name");
    refuse("n1;reboot", -EINVAL, "not the name");
    refuse("n 1", -EINVAL, "not the name");
    refuse("../n1", -EINVAL, "not the name");
}

static void limits(void **state)
{
    (void)state;
    struct hosts h = {0};
    assert_int_equal(hostlist_parse(STR("n[1-16384]"), &h, NULL), 0);
    assert_int_equal(h.count, HOSTS_MAX);
    assert_string_equal(h.names[HOSTS_MAX - 1], "n16384");
    assert_int_equal(hosts_find(&h, STR("n16384")), HOSTS_MAX - 1);
    assert_int_equal(hosts_find(&h, STR("n0")), -1);
    assert_int_equal(hosts_add(&h, STR("one-more"), NULL), -E2BIG);
    hosts_free(&h);
    refuse("n[1-16385]", -E2BIG, "more than");
    refuse("n[1-100]x[1-100]x[1-100]", -E2BIG, "more than");
    // The same few names again and again: the limit counts generated names, not new ones.
    refuse("n[1,1,1,1,1,1,1,1][1,1,1,1,1,1,1,1][1,1,1,1,1,1,1,1][1,1,1,1,1,1,1,1][1,1,1,1,1,1,1,1]["
           "1,1,1,1,1,1,1,1]",
           -E2BIG, "more than");
    refuse("n[1][1][1][1][1][1][1][1][1]", -EINVAL, "too many brackets");
    char name[HOST_NAME_MAX_BYTES + 2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    refuse(name, -EINVAL, "too long");
    name[HOST_NAME_MAX_BYTES] = 0;
    expect(name, name);
    char list[HOST_NAME_MAX_BYTES + 8];
    memcpy(list, name, HOST_NAME_MAX_BYTES - 3);
    memcpy(list + HOST_NAME_MAX_BYTES - 3, "[100]", 6);
    memcpy(name + HOST_NAME_MAX_BYTES - 3, "100", 4);
    expect(list, name);
    // one digit too many, which makes the name one byte too long
    memcpy(list + HOST_NAME_MAX_BYTES - 3, "[1000", 6);
    strcat(list, "]");
    refuse(list, -EINVAL, "too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(faults),
                                       cmocka_unit_test(limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
