// Lines of every protocol and their meaning, as a table: the line, and its items or the answer to
// the client.
#include "base/json_writer.h"
#include "ingest/lines_parse.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

static struct line line;

// Writes the items as "name=value name2=value2 {k=v,k2=v2} @ns", an annotation as "'text' {k=v}
// @ns". A letter precedes a name that is not a plain point.
static void render(struct buf *out)
{
    static const char *const marks[] = {[LINE_POINT] = "",
                                        [LINE_COUNT] = "c ",
                                        [LINE_GAUGE] = "g ",
                                        [LINE_GAUGE_ADD] = "g+ ",
                                        [LINE_MEMBER] = "s "};
    for (size_t i = 0; i < line.item_count; i++) {
        const struct line_item *item = &line.items[i];
        char number[NUMBER_TEXT_MAX];
        struct str value = {number, number_format(number, item->value)};
        if (item->kind == LINE_MEMBER)
            value = item->member;
        buf_printf(out, "%s%s%.*s=%.*s", i ? " " : "", marks[item->kind], STR_ARG(item->name),
                   STR_ARG(value));
        if (item->unit.size)
            buf_printf(out, "[%.*s]", STR_ARG(item->unit));
    }
    if (line.annotation.size)
        buf_printf(out, "'%.*s'", STR_ARG(line.annotation));
    if (line.span != LINE_NO_SPAN)
        buf_printf(out, "%s%llx/%llx '%.*s'", line.span == LINE_SPAN_BEGIN ? "begin " : "end ",
                   (unsigned long long)line.span_id, (unsigned long long)line.span_parent,
                   STR_ARG(line.span_name));
    for (size_t i = 0; i < line.label_count; i++)
        buf_printf(out, "%s%.*s=%.*s", i ? "," : " {", STR_ARG(line.labels[i].key),
                   STR_ARG(line.labels[i].value));
    if (line.label_count)
        buf_add_char(out, '}');
    if (line.has_time)
        buf_printf(out, " @%lld", (long long)line.t_ns);
}

struct fact {
    const char *text, *says; // says: "!…" = refused with this message
};

static void check(const struct fact *facts, size_t count)
{
    line_init(&line);
    for (size_t i = 0; i < count; i++) {
        struct buf out = {0};
        // A copy of the exact size, so that the sanitizer detects reads behind it.
        size_t size = strlen(facts[i].text);
        char *copy = malloc(size + (size == 0));
        memcpy(copy, facts[i].text, size);
        if (line_parse(&line, (struct str){copy, size}))
            render(&out);
        else
            buf_printf(&out, "!%s", line.error);
        if (strcmp(buf_cstr(&out), facts[i].says) != 0)
            fail_msg("%s\n  is    %s\n  not   %s", facts[i].text, buf_cstr(&out), facts[i].says);
        buf_free(&out);
        free(copy);
    }
    line_free(&line);
}

#define CHECK(facts) check(facts, sizeof(facts) / sizeof *(facts))

static void plain_lines(void **state)
{
    (void)state;
    static const struct fact facts[] = {
        {"loss 0.5", "loss=0.5"},
        {"  loss\t 0.5  ", "loss=0.5"},
        {"loss -1e-3 rank=3 phase=warm-up", "loss=-0.001 {rank=3,phase=warm-up}"},
        {"loss 0.5 1700000000", "loss=0.5 @1700000000000000000"},
        {"loss 0.5 1700000000.25 rank=3", "loss=0.5 {rank=3} @1700000000250000000"},
        {"loss 0.5 1700000000123", "loss=0.5 @1700000000123000000"},
        {"loss 0.5 1700000000123456", "loss=0.5 @1700000000123456000"},
        {"loss 0.5 1700000000123456789", "loss=0.5 @1700000000123456789"},
        {"loss 0.5 1700000000.123456789999", "loss=0.5 @1700000000123456789"},
        {"loss nan", "loss=NaN"},
        {"loss inf", "loss=inf"},
        {"a/b:c.d-e_f 1", "a/b:c.d-e_f=1"},
        {"Verlust_\xc3\xa4 1", "Verlust_\xc3\xa4=1"},
        {"loss 0.5 rank=", "loss=0.5"},
        {"loss 0.5 path=a=b", "loss=0.5 {path=a=b}"},
        {"loss", "!the value is missing (expected: name value [time] [tag=value ...])"},
        {"loss abc", "!value 'abc' is not a number"},
        {"loss 0x10", "!value '0x10' is not a number"},
        {"loss 1,5", "!value '1,5' is not a number"},
        {"loss 0.5 yesterday",
         "!time 'yesterday' is not a number of seconds or milliseconds since 1970"},
        {"loss 0.5 -5", "!time '-5' is not a number of seconds or milliseconds since 1970"},
        {"loss 0.5 17.1x", "!time '17.1x' is not a number of seconds or milliseconds since 1970"},
        {"loss 0.5 99999999999999999999",
         "!time '99999999999999999999' is not a number of seconds or milliseconds since 1970"},
        {"loss 0.5 17 18", "!'18' is not a tag (expected tag=value)"},
        {"loss 0.5 rank=1 rank=2", "!tag 'rank' is used twice"},
        {"loss 0.5 ra{nk=1", "!tag 'ra{nk' may hold only letters, digits and _ . / : -"},
        {"loss 0.5 =1", "!a tag is missing"},
        {"lo(ss 0.5", "!name 'lo(ss' may hold only letters, digits and _ . / : -"},
        {"\x1b[31m 5", "!name '?[31m' may hold only letters, digits and _ . / : -"},
        {"loss \x7f\x01\x02", "!value '?\?\?' is not a number"},
    };
    CHECK(facts);
}

static void annotations(void **state)
{
    (void)state;
    static const struct fact facts[] = {
        {"annotate -- rate halved", "'rate halved'"},
        {"annotate 1700000000 -- rate halved", "'rate halved' @1700000000000000000"},
        {"annotate 1700000000.5 rank=3 phase=warm\\sup -- now",
         "'now' {rank=3,phase=warm up} @1700000000500000000"},
        {"annotate rank=3 --   a  b -- c=d ", "'a  b -- c=d' {rank=3}"},
        {"annotate -- two\\nlines\\\\n \\x\\", "'two\nlines\\n \\x\\'"},
        {"annotate empty= -- x", "'x'"},
        {"annotate", "!the value is missing (expected: name value [time] [tag=value ...])"},
        {"annotate --", "!the text is missing (expected: annotate [time] [tag=value ...] -- text)"},
        {"annotate rank=3",
         "!the text is missing (expected: annotate [time] [tag=value ...] -- text)"},
        {"annotate hello -- x",
         "!time 'hello' is not a number of seconds or milliseconds since 1970"},
        {"annotate 17 18 -- x",
         "!'18' is not a tag (expected: annotate [time] [tag=value ...] -- text)"},
        {"annotate a=1 a=2 -- x", "!tag 'a' is used twice"},
        {"annotate a(b=1 -- x", "!tag 'a(b' may hold only letters, digits and _ . / : -"},
    };
    CHECK(facts);
}

static void spans(void **state)
{
    (void)state;
    static const struct fact facts[] = {
        {"span begin 5f3a -- epoch", "begin 5f3a/0 'epoch'"},
        {"span begin ffffffffffffffff/1 1700000000.000000001 rank=3 a=b\\sc -- warm\\sup",
         "begin ffffffffffffffff/1 'warm up' {rank=3,a=b c} @1700000000000000001"},
        {"span end 5f3a", "end 5f3a/0 ''"},
        {"span end 5f3a 1700000000", "end 5f3a/0 '' @1700000000000000000"},
        {"span 0.5 rank=3", "span=0.5 {rank=3}"}, // a metric may have this name
        {"span begin 0 -- x", "!'0' is not the id of a span"},
        {"span begin 5F -- x", "!'5F' is not the id of a span"},
        {"span begin 1/ -- x", "!'' is not the id of a span"},
        {"span begin 1/2/3 -- x", "!'2/3' is not the id of a span"},
        {"span begin 10000000000000000 -- x", "!'10000000000000000' is not the id of a span"},
        {"span begin 1 rank=3",
         "!the text is missing (expected: span begin id[/parent] [time] [tag=value ...] -- name)"},
        {"span end 1 2 3", "!words after the end of a span (expected: span end id [time])"},
        {"span end 1 x", "!time 'x' is not a number of seconds or milliseconds since 1970"},
    };
    CHECK(facts);
}

static void opentsdb_lines(void **state)
{
    (void)state;
    static const struct fact facts[] = {
        {"put sys.cpu.user 1356998400 42.5 host=webserver01 cpu=0",
         "sys.cpu.user=42.5 {host=webserver01,cpu=0} @1356998400000000000"},
        {"put sys.cpu.user 1356998400250 42.5 host=a",
         "sys.cpu.user=42.5 {host=a} @1356998400250000000"},
        {"put sys.cpu.user 1356998400.250 42 host=a",
         "sys.cpu.user=42 {host=a} @1356998400250000000"},
        {"put  m   1356998400   -1  a=b ", "m=-1 {a=b} @1356998400000000000"},
        {"put m 1356998400 1", "m=1 @1356998400000000000"},
        {"put m 1356998400",
         "!put needs a name, a time and a value (expected: put name time value [tag=value ...])"},
        {"put m now 1", "!time 'now' is not a number of seconds or milliseconds since 1970"},
        {"put m 1356998400 one a=b", "!value 'one' is not a number"},
        {"put m 1356998400 1 ab", "!'ab' is not a tag (expected tag=value)"},
        {"put 0.5",
         "!put needs a name, a time and a value (expected: put name time value [tag=value ...])"},
        {"putter 0.5", "putter=0.5"},
    };
    CHECK(facts);
}

static void statsd_lines(void **state)
{
    (void)state;
    static const struct fact facts[] = {
        {"requests:1|c", "c requests=1"},
        {"requests:3|c|@0.1", "c requests=30"},
        {"requests:-2|c", "c requests=-2"},
        {"queue:17|g", "g queue=17"},
        {"queue:+4|g", "g+ queue=4"},
        {"queue:-4|g", "g+ queue=-4"},
        {"step:320|ms", "step=320[milliseconds]"},
        {"step:320|ms|@0.1", "step=320[milliseconds]"},
        {"size:7|h", "size=7"},
        {"size:7|d|#shell", "size=7 {shell=true}"},
        {"users:bob|s", "s users=bob"},
        {"requests:1|c|#path:/x,env:prod", "c requests=1 {path=/x,env=prod}"},
        {"requests:1|c|@0.5|#path:a:b,", "c requests=2 {path=a:b}"},
        {"requests:1|c|#a:1|@0.5|c:83c0a99c0a54c0c187f461c7980e9b57f3f6a8b0|T1656581400",
         "c requests=2 {a=1}"},
        {"step:1:2:3.5|ms", "step=1[milliseconds] step=2[milliseconds] step=3.5[milliseconds]"},
        {"job.web-1/x:1|c", "c job.web-1/x=1"},
        {"requests:x|c", "!value 'x' is not a number"},
        {"requests:|c", "!value '' is not a number"},
        {"requests:1|q", "!type 'q' is not one of c g ms h d s"},
        {"requests:1|", "!type '' is not one of c g ms h d s"},
        {"requests:1|c|@0", "!sample rate '0' is not above 0 and at most 1"},
        {"requests:1|c|@2", "!sample rate '2' is not above 0 and at most 1"},
        {"requests:1|c|@nan", "!sample rate 'nan' is not above 0 and at most 1"},
        {":1|c", "!a name is missing"},
        {"users:|s", "!a set's member is missing"},
        {"requests:1|c|#a:1,a:2", "!tag 'a' is used twice"},
        {"_e{5,4}:title|text", "!type 'text' is not one of c g ms h d s"},
    };
    CHECK(facts);
}

static void influx_lines(void **state)
{
    (void)state;
    static const struct fact facts[] = {
        {"loss value=0.5", "loss=0.5"},
        {"loss,rank=3,phase=train value=0.5 1700000000000000001",
         "loss=0.5 {rank=3,phase=train} @1700000000000000001"},
        {"cpu,host=a user=1.5,system=2i,boots=3u,ok=true,down=F 5",
         "cpu_user=1.5 cpu_system=2 cpu_boots=3 cpu_ok=1 cpu_down=0 {host=a} @5"},
        {"my\\,m,ta\\ g\\==v\\ a\\,l\\=ue value=1",
         "!name 'my,m' may hold only letters, digits and _ . / : -"},
        {"m,tag=v\\ a\\,l\\=u\\\\e value=1", "m=1 {tag=v a,l=u\\e}"},
        {"m,path=C:\\dir value=1", "m=1 {path=C:\\dir}"},
        {"m text=\"a b, c=d \\\" e\",value=2 7", "m=2 @7"},
        {"m text=\"only text\"", ""},
        {"m text=\"a\" 99", " @99"},
        {"m value=t,b=T,c=TRUE,d=f", "m=1 m_b=1 m_c=1 m_d=0"},
        {"m value=-9223372036854775808i", "m=-9.223372036854776e+18"},
        {"m,a=b  value=1", "m=1 {a=b}"},
        {"m,a= value=1", "m=1"},
        {"m value=abc", "!value 'abc' of field 'value' is not a number"},
        {"m value=", "!value '' of field 'value' is not a number"},
        {"m value=1ii", "!value '1ii' of field 'value' is not a number"},
        {"m value=-1u", "!value '-1u' of field 'value' is not a number"},
        {"m text=\"open", "!the text of field 'text' has no closing quote"},
        {"m text=\"a\"b", "!'b' after a field is not understood"},
        {"m value=1 soon", "!time 'soon' is not a number of nanoseconds since 1970"},
        {"m value=1 -5", "!time '-5' is not a number of nanoseconds since 1970"},
        {"m value=1,", "!field '' has no value"},
        {"m value=1,x", "!field 'x' has no value"},
        {"m,a value=1", "!tag 'a' has no value"},
        {"m =1", "!a field is missing"},
        {"m a\\ b=1", "!field 'a b' may hold only letters, digits and _ . / : -"},
        {",a=b value=1", "!a name is missing"},
    };
    CHECK(facts);
}

static void limits(void **state)
{
    (void)state;
    line_init(&line);
    struct buf text = {0};
    // A name of 255 bytes is accepted, one of 256 is not.
    for (int size = STORE_NAME_MAX; size <= STORE_NAME_MAX + 1; size++) {
        text.size = 0;
        for (int i = 0; i < size; i++)
            buf_add_char(&text, 'n');
        buf_add_str(&text, STR(" 1"));
        assert_int_equal(line_parse(&line, buf_str(&text)), size == STORE_NAME_MAX);
    }
    assert_non_null(strstr(line.error, "is longer than 255 bytes"));
    // The same for measurement and field together.
    text.size = 0;
    for (int i = 0; i < STORE_NAME_MAX - 2; i++)
        buf_add_char(&text, 'm');
    buf_add_str(&text, STR(" ab=1"));
    assert_false(line_parse(&line, buf_str(&text)));
    assert_non_null(strstr(line.error, "with field 'ab' is longer than 255 bytes"));
    // 16 tags, not 17.
    text.size = 0;
    buf_add_str(&text, STR("m 1"));
    for (int i = 0; i < STORE_LABELS_MAX + 1; i++) {
        assert_true(line_parse(&line, buf_str(&text)));
        buf_printf(&text, " k%d=v", i);
    }
    assert_false(line_parse(&line, buf_str(&text)));
    assert_string_equal(line.error, "more than 16 tags");
    // A tag's value of 1024 bytes, not 1025; a key of 128, not 129.
    for (int size = STORE_VALUE_MAX; size <= STORE_VALUE_MAX + 1; size++) {
        text.size = 0;
        buf_add_str(&text, STR("m 1 k="));
        for (int i = 0; i < size; i++)
            buf_add_char(&text, 'v');
        assert_int_equal(line_parse(&line, buf_str(&text)), size == STORE_VALUE_MAX);
    }
    for (int size = STORE_KEY_MAX; size <= STORE_KEY_MAX + 1; size++) {
        text.size = 0;
        buf_add_str(&text, STR("m 1 "));
        for (int i = 0; i < size; i++)
            buf_add_char(&text, 'k');
        buf_add_str(&text, STR("=v"));
        assert_int_equal(line_parse(&line, buf_str(&text)), size == STORE_KEY_MAX);
    }
    // 1024 fields, not 1025.
    text.size = 0;
    buf_add_str(&text, STR("m f0=0"));
    for (int i = 1; i < LINE_ITEMS_MAX; i++)
        buf_printf(&text, ",f%d=%d", i, i);
    assert_true(line_parse(&line, buf_str(&text)));
    assert_int_equal(line.item_count, LINE_ITEMS_MAX);
    buf_add_str(&text, STR(",more=1"));
    assert_false(line_parse(&line, buf_str(&text)));
    assert_string_equal(line.error, "more than 1024 values in one line");
    // A line above a limit is refused; the next one is accepted.
    text.size = 0;
    for (int i = 0; i <= LINE_SIZE_MAX; i++)
        buf_add_char(&text, ' ');
    assert_false(line_parse(&line, buf_str(&text)));
    assert_string_equal(line.error, "longer than 65536 bytes");
    assert_true(line_parse(&line, STR("m 1")));
    assert_int_equal(line.item_count, 1);
    buf_free(&text);
    line_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lines),  cmocka_unit_test(opentsdb_lines),
        cmocka_unit_test(statsd_lines), cmocka_unit_test(influx_lines),
        cmocka_unit_test(annotations),  cmocka_unit_test(spans),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests_name("ingest_lines/parse", tests, NULL, NULL);
}
