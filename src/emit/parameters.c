// parameters.c - writes parameters of the run as annotations, which the launcher finds in the
// recording.
//
//   tag   sonde=config
//   text  KEY=VALUE KEY=VALUE …, a value as one word (base/escape.h), up to SEGMENT_TEXT_MAX bytes
//
// So a parameter survives a kill -9 of the program, the agent or the launcher, as every annotation
// does. If one text has no room for all parameters, several annotations are written.
#include "base/escape.h"
#include "emit/ring.h"
#include "emit/tags.h"

#include "sonde.h"

#include <stdarg.h>

// Every character of a value may take two bytes.
_Static_assert(SEGMENT_KEY_MAX + 1 + 2 * SEGMENT_VALUE_MAX <= SEGMENT_TEXT_MAX,
               "one parameter fits into one annotation");

struct parameter_text {
    size_t size;
    char bytes[SEGMENT_TEXT_MAX + 1];
};

static void send_text(struct parameter_text *text)
{
    static const struct sonde_tag mark = {"sonde", "config"};
    text->bytes[text->size] = 0;
    if (text->size)
        sonde_annotate_tags(text->bytes, &mark, 1);
    text->size = 0;
}

// Returns false if the text has no room for the parameter.
static bool add(struct parameter_text *text, const struct sonde_tag *parameter)
{
    struct str key = str_of(parameter->key), value = str_of(parameter->value);
    size_t escapes = 0, at = text->size;
    for (size_t i = 0; i < value.size; i++)
        escapes += escape_letter(value.data[i]) != 0;
    if (at + (at > 0) + key.size + 1 + value.size + escapes > SEGMENT_TEXT_MAX)
        return false;
    if (at)
        text->bytes[at++] = ' ';
    memcpy(text->bytes + at, key.data, key.size);
    at += key.size;
    text->bytes[at++] = '=';
    for (size_t i = 0; i < value.size; i++) {
        char letter = escape_letter(value.data[i]);
        if (letter)
            text->bytes[at++] = '\\';
        text->bytes[at++] = letter ? letter : value.data[i];
    }
    text->size = at;
    return true;
}

void sonde_config_tags(const struct sonde_tag *parameters, size_t count)
{
    struct parameter_text text = {.size = 0};
    if (!emit_on())
        return;
    for (size_t i = 0; i < count; i++) {
        if (!emit_tag_valid(&parameters[i])) {
            atomic_fetch_add_explicit(&emit_process.header->refused, 1, memory_order_relaxed);
            continue;
        }
        if (!add(&text, &parameters[i])) {
            send_text(&text);
            add(&text, &parameters[i]);
        }
    }
    send_text(&text);
}

void sonde_config_strings(const char *key, ...)
{
    va_list args;
    if (!emit_on())
        return;
    va_start(args, key);
    while (key) {
        const char *value = va_arg(args, const char *);
        const struct sonde_tag parameter = {key, value};
        // sonde_config_tags refuses and counts a parameter without a value
        sonde_config_tags(&parameter, 1);
        key = value ? va_arg(args, const char *) : NULL;
    }
    va_end(args);
}
