// The certificates of a machine's authorities: the first file that exists.
#include "client/authorities.h"
#include "unit/test.h"

#include "client/curl.h"

static void the_first_readable_file(void **state)
{
    (void)state;
    static const char *const none[] = {"/nowhere/a", "/nowhere/b", NULL};
    static const char *const one[] = {"/nowhere/a", "/proc/self/status", "/proc/self/stat", NULL};
    assert_null(authorities_first(none));
    assert_string_equal(authorities_first(one), "/proc/self/status");
}

static void libcurl_comes_first(void **state)
{
    (void)state;
#if LIBCURL_VERSION_NUM >= 0x074600
    struct error e;
    assert_int_equal(curl_load(&e), 0);
    const curl_version_info_data *info = curl.version_info(CURLVERSION_NOW);
    if (!info->cainfo && !info->capath)
        skip();
#endif
    assert_null(authorities_default());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_readable_file),
        cmocka_unit_test(libcurl_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
