#include "cli/config.h"

#include "base/full_io.h"
#include "base/home.h"
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

// A file while it is being read.
struct config_file {
    const char *path;
    enum option_source source;
    struct options *o;
    yaml_document_t *document;
    bool given[OPT_COUNT]; // options that this file has set
};

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

// True for the commands that warn about keys that they ignore.
static bool reports_ignored(const struct options *o)
{
    return o->command == COMMAND_RUN || o->command == COMMAND_CONFIG;
}

// Reads the key. The file must be private: a user who can read it, or guess the key, could do
// everything with the job that its owner can.
static void take_auth_key(const char *path, size_t line, const char *key, size_t size,
                          struct options *o)
{
    if (o->auth_key[0]) // a file with a higher priority has set it
        return;
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
    else if (reports_ignored(o))
        log_warning("%s:%zu: auth_key is not used, the job makes its own token: %s", path, line,
                    e.text);
}

// Handles an unknown key. Files for other versions, and for Dragon, may have keys that we do not
// know.
static int unknown_key(const struct options *o, const char *path, size_t line, struct str key)
{
    if (!reports_ignored(o))
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

// Writes {cpu: 0.1, disk: off} as an option's text: "cpu=0.1,disk=off". Returns false if a part of
// it is not a single word.
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
// command or a mapping; any other item makes it return false.
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

// Makes the text of an option's value from a word, a mapping (sources) or a list (scripts). The
// caller frees it.
static int value_text(const struct config_file *f, enum option_id id, struct str name, size_t line,
                      const yaml_node_t *value, char **out, struct error *e)
{
    enum option_type type = option_rows[id].type;
    bool mapping = type == OPTION_SOURCES && value->type == YAML_MAPPING_NODE;
    bool list = type == OPTION_SCRIPTS && value->type == YAML_SEQUENCE_NODE;
    struct buf joined = {.limit = OPTION_TEXT_MAX};
    int status = 0;
    *out = NULL;
    if (!mapping && !list && value->type != YAML_SCALAR_NODE)
        return error_set(e, -EINVAL, "%s:%zu: %.*s takes one value, not a list or a mapping",
                         f->path, line, STR_ARG(name));
    if (list && !join_scripts(f->document, value, &joined))
        status = error_set(e, -EINVAL,
                           "%s:%zu: %.*s takes commands of one line, or mappings of command, rate, "
                           "timeout and name",
                           f->path, line, STR_ARG(name));
    else if (mapping && !join_mapping(f->document, value, &joined))
        status = error_set(e, -EINVAL, "%s:%zu: %.*s takes lines of the form name: word", f->path,
                           line, STR_ARG(name));
    else if (!mapping && !list &&
             strlen((const char *)value->data.scalar.value) != value->data.scalar.length)
        status = error_set(e, -EINVAL, "%s:%zu: %.*s: a NUL byte", f->path, line, STR_ARG(name));
    if (status == 0) {
        *out = strdup(mapping || list ? buf_cstr(&joined) : (char *)value->data.scalar.value);
        status = *out ? 0 : error_set(e, -ENOMEM, "out of memory");
    }
    buf_free(&joined);
    return status;
}

// Applies one "key: value".
static int apply(struct config_file *f, const yaml_node_t *key, const yaml_node_t *value,
                 struct error *e)
{
    size_t line = key->start_mark.line + 1;
    struct options *o = f->o;
    if (key->type != YAML_SCALAR_NODE)
        return error_set(e, -EINVAL, "%s:%zu: a key has to be a word", f->path, line);
    struct str name = {(const char *)key->data.scalar.value, key->data.scalar.length};
    int id = 0;
    while (id < OPT_COUNT && !is_key(&option_rows[id], name))
        id++;
    if (id == OPT_COUNT && !is_file_key(name))
        return unknown_key(o, f->path, line, name);
    if (id == OPT_COUNT && value->type != YAML_SCALAR_NODE)
        return error_set(e, -EINVAL, "%s:%zu: %.*s takes one value, not a list or a mapping",
                         f->path, line, STR_ARG(name));
    if (id == OPT_COUNT) {
        take_auth_key(f->path, line, (const char *)value->data.scalar.value,
                      value->data.scalar.length, o);
        return 0;
    }
    if (f->given[id])
        return error_set(e, -EINVAL, "%s:%zu: '%.*s' is given twice", f->path, line, STR_ARG(name));
    f->given[id] = true;
    char *text; // a copy, because the document's text is freed with it
    int status = value_text(f, (enum option_id)id, name, line, value, &text, e);
    if (status < 0)
        return status;
    struct options checked = *o;
    status = options_set(&checked, (enum option_id)id, text, f->source, e);
    if (status < 0)
        error_prefix(e, "%s:%zu: %.*s", f->path, line, STR_ARG(name));
    if (status < 0 || o->value[id].source >= f->source ||
        !option_set_by_files(&option_rows[id], o->command)) {
        free(text);
        return status;
    }
    o->value[id] = checked.value[id];
    o->value[id].text = text;
    o->value[id].owned = text;
    o->value[id].line = line;
    return 0;
}

// Reports a mistake. In the file that the user has named, it is an error; in another file, a
// warning. `what` is the part that is ignored.
static int mistake(const struct config_file *f, const char *what, struct error *e)
{
    if (f->source == FROM_FILE)
        return e->code;
    log_warning("%s; %s is ignored", e->text, what);
    return 0;
}

static int read_document(struct config_file *f, struct error *e)
{
    const yaml_node_t *root = yaml_document_get_root_node(f->document);
    if (!root) // an empty file sets nothing
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return error_set(e, -EINVAL, "%s:%zu: expected lines of the form key: value", f->path,
                         root->start_mark.line + 1);
    int status = 0;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         status == 0 && pair < root->data.mapping.pairs.top; pair++) {
        if (apply(f, yaml_document_get_node(f->document, pair->key),
                  yaml_document_get_node(f->document, pair->value), e) < 0)
            status = mistake(f, "the line", e);
    }
    return status;
}

static int parse(struct config_file *f, struct str text, struct error *e)
{
    yaml_parser_t parser;
    yaml_document_t document;
    int status;
    if (!yaml_parser_initialize(&parser))
        return error_set(e, -ENOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.data ? text.data : ""),
                                 text.size);
    if (yaml_parser_load(&parser, &document)) {
        f->document = &document;
        status = read_document(f, e);
        yaml_document_delete(&document);
    } else {
        status = error_set(e, -EINVAL, "%s:%zu: %s", f->path, parser.problem_mark.line + 1,
                           parser.problem ? parser.problem : "not YAML");
    }
    yaml_parser_delete(&parser);
    return status;
}

bool config_path(const struct options *o, enum option_source source, char out[PATH_MAX])
{
    const char *named = options_text(o, OPT_CONFIG), *system = getenv("SONDE_SYSTEM_CONFIG");
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = home_folder();
    int size = -1;
    if (source == FROM_FILE && named)
        size = snprintf(out, PATH_MAX, "%s", named);
    else if (source == FROM_USER_FILE && folder && folder[0] == '/')
        size = snprintf(out, PATH_MAX, "%s/sonde.yaml", folder);
    else if (source == FROM_USER_FILE && home)
        size = snprintf(out, PATH_MAX, "%s/.config/sonde.yaml", home);
    else if (source == FROM_SYSTEM_FILE && (!system || *system))
        size = snprintf(out, PATH_MAX, "%s", system ? system : CONFIG_SYSTEM_FILE);
    return size > 0 && size < PATH_MAX;
}

int config_read_all(struct options *o, struct error *e)
{
    int status = 0;
    if (o->value[OPT_CONTROL_FD].source == FROM_FLAG ||
        (o->command == COMMAND_CONFIG && !options_flag(o, OPT_SETTINGS)))
        return 0;
    for (enum option_source source = FROM_FILE; source >= FROM_SYSTEM_FILE && !status; source--) {
        char path[PATH_MAX];
        struct config_file f = {.path = path, .source = source, .o = o};
        struct buf text = {0};
        if (!config_path(o, source, path))
            continue;
        int failed = read_file(path, &text, e);
        bool absent = source != FROM_FILE && (failed == -ENOENT || failed == -ENOTDIR);
        if (!failed)
            failed = parse(&f, buf_str(&text), e);
        if (failed && !absent)
            status = mistake(&f, "the file", e);
        buf_free(&text);
    }
    return status;
}
