// A build without an HTTP client: every way to create a client fails, and says why.
#include "client/http.h"
#include "unit/test.h"

#include <errno.h>
#include <string.h>

static void no_client_is_created(void **state)
{
    (void)state;
    struct http_client *c = (struct http_client *)&c;
    struct error e = {0};
    assert_int_equal(http_client_create("http://127.0.0.1:1", NULL, &c, &e), -ENOTSUP);
    assert_null(c);
    assert_non_null(strstr(e.text, "built without libcurl"));
    c = (struct http_client *)&c;
    assert_int_equal(http_client_create_for(NULL, NULL, &c, &e), -ENOTSUP);
    assert_null(c);
    c = (struct http_client *)&c;
    assert_int_equal(http_client_create_like(NULL, &c, &e), -ENOTSUP);
    assert_null(c);
    http_client_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_client_is_created)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
