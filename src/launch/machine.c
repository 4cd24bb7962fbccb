#include "launch/machine.h"

#include "base/utf8.h"
#include "launch/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES_MAX = 64 * 1024 };

// Reads the file below `root`, at most FILE_BYTES_MAX of it; empty if it does not exist.
// folder_read cannot read files of /proc, because they report no size.
static struct str read_file(const char *root, const char *path, struct buf *out)
{
    char whole[FOLDER_PATH_MAX];
    int n = snprintf(whole, sizeof whole, "%s/%s", root, path);
    FILE *file = n < (int)sizeof whole ? fopen(whole, "re") : NULL;
    out->size = 0;
    if (!file)
        return (struct str){0};
    if (buf_reserve(out, FILE_BYTES_MAX))
        out->size = fread(out->data, 1, FILE_BYTES_MAX, file);
    fclose(file);
    return buf_str(out);
}

// Returns the value of the first line "KEY<separator>VALUE", without surrounding blanks and quotes.
static struct str value_of(struct str text, struct str key, char separator)
{
    while (text.data) {
        struct str value = str_cut(&text, '\n'), name = str_cut(&value, separator);
        if (!value.data || !str_eq(str_trim(name), key))
            continue;
        value = str_trim(value);
        if (value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"')
            value = str_slice(value, 1, value.size - 1);
        return value;
    }
    return (struct str){0};
}

// Returns NULL for a text that is empty, too long or not printable.
static json_t *text_of(struct str value)
{
    const unsigned char *at = (const unsigned char *)value.data;
    for (size_t i = 0, n; i < value.size; i += n) {
        n = utf8_sequence(at + i, value.size - i);
        if (n == 0 || at[i] < ' ' || at[i] == 0x7f)
            return NULL;
    }
    return value.size && value.size <= MACHINE_TEXT_MAX ? json_stringn(value.data, value.size)
                                                        : NULL;
}

static void add(json_t *to, const char *key, struct str value)
{
    json_t *text = text_of(value);
    if (text)
        json_object_set_new(to, key, text);
}

static void add_filled(json_t *to, const char *key, json_t *value)
{
    if (json_object_size(value) + json_array_size(value) > 0)
        json_object_set(to, key, value);
    json_decref(value);
}

// ---------------------------------------------------------------- GPUs

// Calls `each` with the path of every entry of a folder whose name begins with `beginning`.
static void each_entry(const char *root, const char *folder, const char *beginning,
                       void each(const char *root, const char *entry, json_t *counts),
                       json_t *counts)
{
    char path[FOLDER_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", root, folder);
    DIR *entries = n < (int)sizeof path ? opendir(path) : NULL;
    for (struct dirent *entry = entries ? readdir(entries) : NULL; entry;
         entry = readdir(entries)) {
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, beginning, strlen(beginning)) != 0 ||
            strchr(entry->d_name, '-'))
            continue; // card0-HDMI-A-1 is a connector
        n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (n < (int)sizeof path)
            each(root, path, counts);
    }
    if (entries)
        closedir(entries);
}

static void count_model(json_t *counts, struct str model)
{
    json_t *text = text_of(model);
    const char *key = json_string_value(text);
    json_int_t before = key ? json_integer_value(json_object_get(counts, key)) : 0;
    if (key && (before || json_object_size(counts) < MACHINE_GPUS_MAX))
        json_object_set_new(counts, key, json_integer(before + 1));
    json_decref(text);
}

static void count_nvidia(const char *root, const char *entry, json_t *counts)
{
    char path[FOLDER_PATH_MAX];
    struct buf text = {0};
    if (snprintf(path, sizeof path, "%s/information", entry) < (int)sizeof path)
        count_model(counts, value_of(read_file(root, path, &text), STR("Model"), ':'));
    buf_free(&text);
}

// Counts AMD's cards, which have a name of their own; NVIDIA's are counted above.
static void count_card(const char *root, const char *entry, json_t *counts)
{
    char path[FOLDER_PATH_MAX];
    struct buf text = {0};
    if (snprintf(path, sizeof path, "%s/device/product_name", entry) < (int)sizeof path)
        count_model(counts, str_trim(read_file(root, path, &text)));
    buf_free(&text);
}

static json_t *gpus(const char *root)
{
    json_t *counts = json_object(), *out = json_array(), *value;
    const char *model;
    each_entry(root, "proc/driver/nvidia/gpus", "", count_nvidia, counts);
    each_entry(root, "sys/class/drm", "card", count_card, counts);
    json_object_foreach(counts, model, value)
    {
        json_array_append_new(out, json_sprintf("%d x %s", (int)json_integer_value(value), model));
    }
    json_decref(counts);
    return out;
}

static json_t *drivers(const char *root)
{
    static const char *const modules[] = {"nvidia", "amdgpu", "i915", "xe"};
    json_t *out = json_object();
    struct buf text = {0};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        char path[64];
        snprintf(path, sizeof path, "sys/module/%s/version", modules[i]);
        add(out, modules[i], str_trim(read_file(root, path, &text)));
    }
    buf_free(&text);
    return out;
}

json_t *machine_describe(const char *root)
{
    json_t *out = json_object();
    struct buf text = {0};
    if (!out)
        return NULL;
    add(out, "kernel", str_trim(read_file(root, "proc/sys/kernel/osrelease", &text)));
    add(out, "system", value_of(read_file(root, "etc/os-release", &text), STR("PRETTY_NAME"), '='));
    add(out, "cpu", value_of(read_file(root, "proc/cpuinfo", &text), STR("model name"), ':'));
    add_filled(out, "gpus", gpus(root));
    add_filled(out, "drivers", drivers(root));
    buf_free(&text);
    return out;
}
