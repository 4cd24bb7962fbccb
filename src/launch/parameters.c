#include "launch/parameters.h"

#include "base/escape.h"
#include "launch/folder.h"
#include "store/read.h"

#include <dirent.h>
#include <stdio.h>

void parameters_free(struct parameters *p)
{
    json_decref(p->values);
    json_decref(p->times);
    *p = (struct parameters){0};
}

// Returns false if there is no room for the value, or if it is not valid text.
static bool take(struct parameters *p, const char *key, struct str value, int64_t t_ns)
{
    const json_t *known = json_object_get(p->values, key);
    size_t before = known ? strlen(key) + json_string_length(known) : 0;
    size_t bytes = p->bytes - before + strlen(key) + value.size;
    if (known && json_integer_value(json_object_get(p->times, key)) > t_ns)
        return true;
    if (bytes > PARAMETERS_BYTES || (!known && json_object_size(p->values) == PARAMETERS_MAX))
        return false;
    if (json_object_set_new(p->values, key, json_stringn(value.data, value.size)) < 0)
        return false;
    json_object_set_new(p->times, key, json_integer(t_ns));
    p->bytes = bytes;
    return true;
}

static bool is_marked(const struct store_event *event)
{
    for (size_t i = 0; i < event->label_count; i++)
        if (str_eq(event->labels[i].key, STR("sonde")))
            return str_eq(event->labels[i].value, STR("config"));
    return false;
}

void parameters_add_event(struct parameters *p, const struct store_event *event)
{
    if (event->kind != STORE_ANNOTATION || !is_marked(event))
        return;
    if (!p->values) {
        p->values = json_object();
        p->times = json_object();
    }
    struct arena arena = {0};
    for (struct str rest = event->text, word = str_word(&rest); word.size; word = str_word(&rest)) {
        struct str value = word, key = str_cut(&value, '=');
        char name[PARAMETERS_KEY_MAX + 1];
        bool taken = value.data && key.size && key.size < sizeof name;
        if (taken) {
            memcpy(name, key.data, key.size);
            name[key.size] = 0;
            value = unescape_word(value, &arena);
            taken = value.data && value.size <= PARAMETERS_VALUE_MAX &&
                    take(p, name, value, event->start_ns);
        }
        p->lost += !taken;
    }
    arena_free(&arena);
}

static bool each_event(const struct store_event *event, void *user)
{
    parameters_add_event(user, event);
    return true;
}

static void add_file(struct parameters *p, const char *path)
{
    static const struct store_event_selection annotations = {
        .from_ns = INT64_MIN, .to_ns = INT64_MAX, .kinds = 1U << STORE_ANNOTATION};
    struct store_reader *reader;
    if (store_reader_open(path, &reader, NULL) < 0)
        return;
    struct store_snapshot *snapshot = store_snapshot_open(reader);
    if (snapshot) {
        store_events_find(snapshot, &annotations, each_event, p);
        store_snapshot_close(snapshot);
    }
    store_reader_close(reader);
}

void parameters_add_folder(struct parameters *p, const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry = entries ? readdir(entries) : NULL; entry;
         entry = readdir(entries)) {
        char path[FOLDER_PATH_MAX + 256];
        if (!folder_is_recording(entry->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        add_file(p, path);
    }
    if (entries)
        closedir(entries);
}

void parameters_describe(const struct parameters *p, json_t *about)
{
    if (json_object_size(p->values))
        json_object_set(about, "config", p->values);
    if (p->lost)
        json_object_set_new(about, "config_lost", json_integer((json_int_t)p->lost));
}
