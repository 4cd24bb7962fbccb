#include "cli/config.h"

#include "base/full_io.h"
#include "base/log.h"
#include "cli/nearest.h"
#include "http/secrets.h"
#include "http/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

static int read_file(const char *path, struct buf *out, struct error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_set(e, -errno, "cannot read configuration file %s: %s", path, strerror(errno));
    out->limit = CONFIG_SIZE_MAX;
    int rc = full_read(fd, out);
    close(fd);
    if (rc == -EFBIG)
        return error_set(e, rc, "configuration file %s: more than %d bytes", path, CONFIG_SIZE_MAX);
    return rc ? error_set(e, rc, "cannot read configuration file %s: %s", path, strerror(-rc)) : 0;
}

static bool is_key(const struct option_row *row, struct str key)
{
    return (row->key[0] && str_eq(key, str_of(row->key))) ||
           (row->dragon_key[0] && str_eq(key, str_of(row->dragon_key)));
}

static bool is_file_key(struct str key)
{
    for (size_t i = 0; i < file_key_count; i++) {
        if (str_eq(key, str_of(file_keys[i].key)))
            return true;
    }
    return false;
}

// The file has to be private: a user who can read it, or guess the key, could do with the job
// everything that its user can.
static void take_auth_key(const char *path, size_t line, const char *key, size_t size,
                          struct options *o)
{
    struct buf file = {0};
    struct error e = {0};
    if (size < TOKEN_FILE_MIN || !token_valid((struct str){key, size}))
        error_set(&e, -EINVAL,
                  "it has to be %d to %d of A-Z a-z 0-9 - . _ ~ (openssl rand -hex 32 makes one)",
                  TOKEN_FILE_MIN, TOKEN_MAX);
    else
        secrets_read(path, SECRETS_PRIVATE, &file, &e);
    secrets_free(&file);
    if (!e.code)
        memcpy(o->auth_key, key, size + 1);
    else if (o->command == COMMAND_RUN)
        log_warning("%s:%zu: auth_key is not used, the job makes its own token: %s", path, line,
                    e.text);
}

// Files for other versions, and for Dragon, may have keys that we do not know. `sonde run` warns
// about them; commands that only query a job do not.
static int unknown_key(const struct options *o, const char *path, size_t line, struct str key)
{
    if (o->command != COMMAND_RUN)
        return 0;
    struct nearest near = nearest_to(key);
    for (int id = 0; id < OPT_COUNT; id++) {
        if (option_rows[id].key[0])
            nearest_offer(&near, str_of(option_rows[id].key));
        if (option_rows[id].dragon_key[0])
            nearest_offer(&near, str_of(option_rows[id].dragon_key));
    }
    for (size_t i = 0; i < file_key_count; i++)
        nearest_offer(&near, str_of(file_keys[i].key));
    int shown = key.size > 80 ? 80 : (int)key.size;
    if (near.best.data)
        log_warning("%s:%zu: ignored the unknown key '%.*s'; did you mean %s?", path, line, shown,
                    key.data, near.best.data);
    else
        log_warning("%s:%zu: ignored the unknown key '%.*s'; see sonde help run", path, line, shown,
                    key.data);
    return 0;
}

// Writes {cpu: 0.1, disk: off} as an option's text: "cpu=0.1,disk=off". False if a part of it is
// not a single word.
static bool join_mapping(yaml_document_t *document, const yaml_node_t *mapping, struct buf *out)
{
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *both[] = {yaml_document_get_node(document, pair->key),
                                     yaml_document_get_node(document, pair->value)};
        for (size_t i = 0; i < 2; i++) {
            if (both[i]->type != YAML_SCALAR_NODE)
                return false;
            struct str word = {(const char *)both[i]->data.scalar.value,
                               both[i]->data.scalar.length};
            if (word.size == 0 || strcspn(word.data, ",= \t\n") != word.size)
                return false;
            buf_printf(out, "%s%.*s", i == 1 ? "=" : out->size ? "," : "", STR_ARG(word));
        }
    }
    return out->size > 0 && !out->failed;
}

// Writes a list of scripts as an option's text, one per line: "name=x rate=5 COMMAND". An item is a
// command, or a mapping; false for any other item.
static bool join_scripts(yaml_document_t *document, const yaml_node_t *list, struct buf *out)
{
    for (const yaml_node_item_t *item = list->data.sequence.items.start;
         item < list->data.sequence.items.top; item++) {
        const yaml_node_t *node = yaml_document_get_node(document, *item), *command = node;
        buf_printf(out, "%s", out->size ? "\n" : "");
        if (node->type == YAML_MAPPING_NODE) {
            command = NULL;
            for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
                 pair < node->data.mapping.pairs.top; pair++) {
                const yaml_node_t *key = yaml_document_get_node(document, pair->key),
                                  *value = yaml_document_get_node(document, pair->value);
                if (key->type != YAML_SCALAR_NODE || value->type != YAML_SCALAR_NODE)
                    return false;
                const char *name = (const char *)key->data.scalar.value,
                           *word = (const char *)value->data.scalar.value;
                if (strcmp(name, "command") == 0) {
                    command = value;
                    continue;
                }
                if (strcmp(name, "name") != 0 && strcmp(name, "rate") != 0 &&
                    strcmp(name, "timeout") != 0)
                    return false;
                if (!*word || strcspn(word, " \t\n") != value->data.scalar.length)
                    return false;
                buf_printf(out, "%s=%s ", name, word);
            }
        }
        if (!command || command->type != YAML_SCALAR_NODE)
            return false;
        const char *text = (const char *)command->data.scalar.value;
        struct str trimmed = str_trim((struct str){text, strlen(text)});
        if (trimmed.size == 0 || memchr(trimmed.data, '\n', trimmed.size) ||
            strlen(text) != command->data.scalar.length)
            return false;
        buf_printf(out, "%.*s", STR_ARG(trimmed));
    }
    return out->size > 0 && !out->failed;
}

// Applies one "key: value". `given` marks the options that the file has set already.
static int apply(const char *path, yaml_document_t *document, const yaml_node_t *key,
                 const yaml_node_t *value, struct options *o, bool *given, struct error *e)
{
    size_t line = key->start_mark.line + 1;
    if (key->type != YAML_SCALAR_NODE)
        return error_set(e, -EINVAL, "%s:%zu: a key has to be a word", path, line);
    struct str name = {(const char *)key->data.scalar.value, key->data.scalar.length};
    int id = 0;
    while (id < OPT_COUNT && !is_key(&option_rows[id], name))
        id++;
    bool auth_key = id == OPT_COUNT && is_file_key(name);
    if (id == OPT_COUNT && !auth_key)
        return unknown_key(o, path, line, name);
    bool mapping = id < OPT_COUNT && option_rows[id].type == OPTION_SOURCES &&
                   value->type == YAML_MAPPING_NODE;
    bool list = id < OPT_COUNT && option_rows[id].type == OPTION_SCRIPTS &&
                value->type == YAML_SEQUENCE_NODE;
    bool joins = mapping || list;
    if (value->type != YAML_SCALAR_NODE && !joins)
        return error_set(e, -EINVAL, "%s:%zu: %.*s takes one value, not a list or a mapping", path,
                         line, STR_ARG(name));
    if (auth_key) {
        take_auth_key(path, line, (const char *)value->data.scalar.value, value->data.scalar.length,
                      o);
        return 0;
    }
    if (given[id])
        return error_set(e, -EINVAL, "%s:%zu: '%.*s' is given twice", path, line, STR_ARG(name));
    given[id] = true;
    if (!joins && strlen((const char *)value->data.scalar.value) != value->data.scalar.length)
        return error_set(e, -EINVAL, "%s:%zu: %.*s: a NUL byte", path, line, STR_ARG(name));
    struct buf joined = {.limit = OPTION_TEXT_MAX};
    if (list && !join_scripts(document, value, &joined)) {
        buf_free(&joined);
        return error_set(e, -EINVAL,
                         "%s:%zu: %.*s takes commands of one line, or mappings of command, rate, "
                         "timeout and name",
                         path, line, STR_ARG(name));
    }
    if (mapping && !join_mapping(document, value, &joined)) {
        buf_free(&joined);
        return error_set(e, -EINVAL, "%s:%zu: %.*s takes lines of the form name: word", path, line,
                         STR_ARG(name));
    }
    const char *text = joins ? buf_cstr(&joined) : (const char *)value->data.scalar.value;
    char *copy = strdup(text); // the document's text is freed with it
    buf_free(&joined);
    if (!copy)
        return error_set(e, -ENOMEM, "out of memory");
    struct options checked = *o;
    int status = options_set(&checked, (enum option_id)id, copy, FROM_FILE, e);
    bool taken =
        status == 0 && o->value[id].source <= FROM_FILE && option_on(&option_rows[id], o->command);
    if (!taken)
        free(copy);
    if (status < 0)
        error_prefix(e, "%s:%zu: %.*s", path, line, STR_ARG(name));
    if (!taken)
        return status;
    o->value[id] = checked.value[id];
    o->value[id].text = copy;
    o->value[id].owned = copy;
    return 0;
}

static int read_document(const char *path, yaml_document_t *document, struct options *o,
                         struct error *e)
{
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (!root) // an empty file sets nothing
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return error_set(e, -EINVAL, "%s:%zu: expected lines of the form key: value", path,
                         root->start_mark.line + 1);
    bool given[OPT_COUNT] = {false};
    int status = 0;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         status == 0 && pair < root->data.mapping.pairs.top; pair++)
        status = apply(path, document, yaml_document_get_node(document, pair->key),
                       yaml_document_get_node(document, pair->value), o, given, e);
    return status;
}

int config_read(const char *path, struct options *o, struct error *e)
{
    struct buf text = {0};
    int status = read_file(path, &text, e);
    yaml_parser_t parser;
    if (status == 0 && !yaml_parser_initialize(&parser))
        status = error_set(e, -ENOMEM, "out of memory");
    if (status < 0) {
        buf_free(&text);
        return status;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.data ? text.data : ""),
                                 text.size);
    yaml_document_t document;
    if (yaml_parser_load(&parser, &document)) {
        status = read_document(path, &document, o, e);
        yaml_document_delete(&document);
    } else {
        status = error_set(e, -EINVAL, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                           parser.problem ? parser.problem : "not YAML");
    }
    yaml_parser_delete(&parser);
    buf_free(&text);
    return status;
}
