#include "formats/tensorboard.h"

#include "base/clock.h"
#include "formats/protobuf.h"
#include "formats/tfrecord.h"

#include <errno.h>
#include <math.h>

enum event_field {
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_NS = 51790
};
enum value_field {
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    VALUE_DOUBLE = 51791
};
enum { SUMMARY_VALUE = 1 };
enum metadata_field { METADATA_PLUGIN = 1, METADATA_DESCRIPTION = 3 };
enum { PLUGIN_NAME = 1 };
enum tensor_field {
    TENSOR_TYPE = 1,
    TENSOR_CONTENT = 4,
    TENSOR_FLOATS = 5,
    TENSOR_DOUBLES = 6,
    TENSOR_INTS = 7,
    TENSOR_LONGS = 10
};
enum tensor_type { TYPE_FLOAT = 1, TYPE_DOUBLE = 2, TYPE_INT32 = 3, TYPE_INT64 = 9 };

void tensorboard_add_version(struct buf *out)
{
    size_t record = tfrecord_begin(out);
    protobuf_double(out, EVENT_TIME, 0);
    protobuf_text(out, EVENT_VERSION, STR("brain.Event:2"));
    tfrecord_end(out, record);
}

void tensorboard_add_scalar(struct buf *out, const struct tensorboard_scalar *s)
{
    int64_t whole_s = s->t_ns / NS_PER_S, rest_ns = s->t_ns % NS_PER_S;
    double seconds = (double)whole_s + (double)rest_ns / NS_PER_S;
    float simple = (float)s->value;
    size_t record = tfrecord_begin(out);
    protobuf_double(out, EVENT_TIME, seconds);
    protobuf_u64(out, EVENT_STEP, (uint64_t)s->step);
    size_t summary = protobuf_begin(out, EVENT_SUMMARY), value = protobuf_begin(out, SUMMARY_VALUE);
    protobuf_text(out, VALUE_TAG, s->tag);
    protobuf_float(out, VALUE_SIMPLE, simple);
    if (s->about.size) {
        size_t metadata = protobuf_begin(out, VALUE_METADATA);
        size_t plugin = protobuf_begin(out, METADATA_PLUGIN);
        protobuf_text(out, PLUGIN_NAME, STR("scalars"));
        protobuf_end(out, plugin);
        protobuf_text(out, METADATA_DESCRIPTION, s->about);
        protobuf_end(out, metadata);
    }
    if ((double)simple != s->value && s->value == s->value)
        protobuf_double(out, VALUE_DOUBLE, s->value);
    protobuf_end(out, value);
    protobuf_end(out, summary);
    protobuf_fixed64(out, EVENT_NS, (uint64_t)s->t_ns);
    tfrecord_end(out, record);
}

// ---------------------------------------------------------------- reading

// Reads the only number of a packed list, or of a tensor's content. Returns false if there is none,
// or several.
static bool only_number(struct str bytes, enum tensor_type type, double *out)
{
    struct bytes b = bytes_of(bytes.data, bytes.size);
    uint32_t bits;
    float real;
    switch (type) {
    case TYPE_FLOAT:
        bits = bytes_u32(&b);
        memcpy(&real, &bits, sizeof real);
        *out = (double)real;
        break;
    case TYPE_DOUBLE:
        *out = bytes_f64(&b);
        break;
    case TYPE_INT32:
        *out = (int32_t)bytes_u32(&b);
        break;
    case TYPE_INT64:
        *out = (double)(int64_t)bytes_u64(&b);
        break;
    default:
        return false;
    }
    return !b.failed && !bytes_left(&b);
}

static bool only_varint(const struct protobuf_field *f, double *out)
{
    struct bytes b = bytes_of(f->bytes.data, f->bytes.size);
    uint64_t bits = f->wire == PROTOBUF_SIZED ? bytes_varint(&b) : f->bits;
    *out = (double)(int64_t)bits;
    return f->wire != PROTOBUF_SIZED || (!b.failed && !bytes_left(&b));
}

// Returns true for a scalar. *failed: the tensor is damaged.
static bool read_tensor(struct str tensor, double *out, bool *failed)
{
    struct bytes m = bytes_of(tensor.data, tensor.size);
    struct protobuf_field f;
    enum tensor_type type = TYPE_FLOAT;
    bool found = false;
    while (protobuf_next(&m, &f)) {
        bool sized = f.wire == PROTOBUF_SIZED;
        if (f.number == TENSOR_TYPE)
            type = (enum tensor_type)f.bits;
        else if (f.number == TENSOR_CONTENT && sized)
            found = only_number(f.bytes, type, out);
        else if (f.number == TENSOR_FLOATS && sized)
            found = only_number(f.bytes, TYPE_FLOAT, out);
        else if (f.number == TENSOR_DOUBLES && sized)
            found = only_number(f.bytes, TYPE_DOUBLE, out);
        else if (f.number == TENSOR_FLOATS && f.wire == PROTOBUF_FIXED32)
            found = (*out = (double)protobuf_as_float(&f), true);
        else if (f.number == TENSOR_DOUBLES && f.wire == PROTOBUF_FIXED64)
            found = (*out = protobuf_as_double(&f), true);
        else if (f.number == TENSOR_INTS || f.number == TENSOR_LONGS)
            found = only_varint(&f, out);
    }
    *failed |= m.failed;
    return found;
}

static struct str read_description(struct str metadata, bool *failed)
{
    struct bytes m = bytes_of(metadata.data, metadata.size);
    struct protobuf_field f;
    struct str found = {0};
    while (protobuf_next(&m, &f))
        if (f.number == METADATA_DESCRIPTION && f.wire == PROTOBUF_SIZED)
            found = f.bytes;
    *failed |= m.failed;
    return found;
}

// Returns true for a scalar with a tag. *failed: the value is damaged.
static bool read_value(struct str value, struct tensorboard_scalar *s, bool *failed)
{
    struct bytes m = bytes_of(value.data, value.size);
    struct protobuf_field f;
    bool coarse = false, exact = false;
    double v = 0;
    s->tag = s->about = (struct str){0};
    while (protobuf_next(&m, &f)) {
        if (f.number == VALUE_TAG && f.wire == PROTOBUF_SIZED)
            s->tag = f.bytes;
        else if (f.number == VALUE_METADATA && f.wire == PROTOBUF_SIZED)
            s->about = read_description(f.bytes, failed);
        else if (f.number == VALUE_SIMPLE && f.wire == PROTOBUF_FIXED32)
            coarse = (v = (double)protobuf_as_float(&f), true);
        else if (f.number == VALUE_TENSOR && f.wire == PROTOBUF_SIZED)
            coarse = read_tensor(f.bytes, &v, failed);
        else if (f.number == VALUE_DOUBLE && f.wire == PROTOBUF_FIXED64)
            exact = (s->value = protobuf_as_double(&f), true);
    }
    if (!exact)
        s->value = v;
    *failed |= m.failed;
    return coarse && s->tag.size;
}

static bool time_of(double seconds, int64_t *t_ns)
{
    double whole = floor(seconds);
    if (!(whole > -9e9 && whole < 9e9))
        return false;
    *t_ns = (int64_t)whole * NS_PER_S + (int64_t)((seconds - whole) * NS_PER_S);
    return true;
}

static int read_summary(struct str summary, struct tensorboard_scalar *s, tensorboard_take_fn *take,
                        void *user)
{
    struct bytes m = bytes_of(summary.data, summary.size);
    struct protobuf_field f;
    int rc = 0;
    bool failed = false;
    while (!rc && !failed && protobuf_next(&m, &f)) {
        if (f.number == SUMMARY_VALUE && f.wire == PROTOBUF_SIZED &&
            read_value(f.bytes, s, &failed) && !failed)
            rc = take(user, s);
    }
    return rc ? rc : failed || m.failed ? -EBADMSG : 0;
}

int tensorboard_read(struct str event, tensorboard_take_fn *take, void *user)
{
    struct bytes m = bytes_of(event.data, event.size);
    struct protobuf_field f;
    struct tensorboard_scalar s = {0};
    struct str summary = {0};
    bool timed = false, exact = false;
    while (protobuf_next(&m, &f)) {
        if (f.number == EVENT_TIME && f.wire == PROTOBUF_FIXED64 && !exact)
            timed = time_of(protobuf_as_double(&f), &s.t_ns);
        else if (f.number == EVENT_STEP && f.wire == PROTOBUF_VARINT)
            s.step = (int64_t)f.bits;
        else if (f.number == EVENT_SUMMARY && f.wire == PROTOBUF_SIZED)
            summary = f.bytes;
        else if (f.number == EVENT_NS && f.wire == PROTOBUF_FIXED64)
            s.ours = exact = (s.t_ns = (int64_t)f.bits, true);
    }
    if (m.failed)
        return -EBADMSG;
    if (!summary.data)
        return 0;
    return timed || exact ? read_summary(summary, &s, take, user) : -EBADMSG;
}

// ---------------------------------------------------------------- tags

void tensorboard_add_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < ' ' || c == '%' || c == '/' || c == '=' || c == ',')
            buf_printf(out, "%%%02X", c);
        else
            buf_add_char(out, (char)c);
    }
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void tensorboard_add_unescaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        bool escaped = text.data[i] == '%' && text.size - i > 2 && digit(text.data[i + 1]) >= 0 &&
                       digit(text.data[i + 2]) >= 0;
        buf_add_char(out, escaped ? (char)(digit(text.data[i + 1]) << 4 | digit(text.data[i + 2]))
                                  : text.data[i]);
        i += escaped ? 2 : 0;
    }
}
