#include "launch/run_metadata.h"

#include "base/hex.h"
#include "base/utf8.h"
#include "launch/folder.h"
#include "launch/machine.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAD_BYTES = 4096,      // limit for .git/HEAD, for a reference, for a file .git
    PACKED_BYTES = 4 << 20, // limit for packed-refs
    COMMIT_CHARS_MIN = 40,  // SHA-1; 64 with SHA-256
    COMMIT_CHARS_MAX = 64,
    VARIABLES_BYTES = 16384, // total size of the kept environment
};

// ---------------------------------------------------------------- name, note and tags

static bool is_printable(struct str s)
{
    const unsigned char *at = (const unsigned char *)s.data;
    for (size_t i = 0; i < s.size;) {
        size_t n = utf8_sequence(at + i, s.size - i);
        if (n == 0 || at[i] < ' ' || at[i] == 0x7f || (n == 2 && utf8_is_control(at + i)))
            return false;
        i += n;
    }
    return true;
}

int run_metadata_check_name(struct str name, struct error *e)
{
    if (name.size == 0 || name.size > RUN_METADATA_NAME_MAX || !is_printable(name) ||
        memchr(name.data, '/', name.size) || name.data[0] == '-')
        return error_set(e, -EINVAL,
                         "a name has 1 to %d bytes of printable text, no '/', and no '-' in front",
                         RUN_METADATA_NAME_MAX);
    if (str_eq(name, STR("last")))
        return error_set(e, -EINVAL, "'last' means the newest recording; choose another name");
    return 0;
}

int run_metadata_check_tag(struct str tag, const char *const *names, struct error *e)
{
    struct str value = tag, key = str_cut(&value, '=');
    if (!value.data || key.size == 0)
        return error_set(e, -EINVAL, "'%.80s' is not KEY=VALUE", tag.data);
    for (size_t i = 0; i < key.size; i++)
        if (!isalnum((unsigned char)key.data[i]) && !strchr("_.-", key.data[i]))
            return error_set(e, -EINVAL,
                             "the key of '%.80s' has a character other than letters, "
                             "digits and _ . -",
                             tag.data);
    if (key.size > RUN_METADATA_KEY_MAX || value.size > RUN_METADATA_VALUE_MAX)
        return error_set(e, -EINVAL, "a tag has at most %d bytes before '=' and %d behind it",
                         RUN_METADATA_KEY_MAX, RUN_METADATA_VALUE_MAX);
    if (!is_printable(value))
        return error_set(e, -EINVAL, "the value of tag %.*s is not printable text", STR_ARG(key));
    for (size_t i = 0; names && names[i]; i++)
        if (str_eq(key, str_of(names[i])))
            return error_set(e, -EINVAL, "%s is a column of sonde ls already; choose another key",
                             names[i]);
    return 0;
}

static void add_text(json_t *to, const char *key, struct str text)
{
    if (text.size)
        json_object_set_new(to, key, json_stringn(text.data, text.size));
}

static json_t *tags_of(const char *text)
{
    json_t *tags = json_object();
    for (struct str rest = str_of(text); rest.data;) {
        struct str value = str_cut(&rest, '\n'), key = str_cut(&value, '=');
        char name[RUN_METADATA_KEY_MAX + 1];
        if (!value.data || key.size > RUN_METADATA_KEY_MAX ||
            json_object_size(tags) == RUN_METADATA_TAGS_MAX)
            continue;
        memcpy(name, key.data, key.size);
        name[key.size] = 0;
        json_object_set_new(tags, name, json_stringn(value.data, value.size));
    }
    return tags;
}

// ---------------------------------------------------------------- git

static bool is_commit(struct str s)
{
    for (size_t i = 0; i < s.size; i++)
        if (!isxdigit((unsigned char)s.data[i]))
            return false;
    return s.size == COMMIT_CHARS_MIN || s.size == COMMIT_CHARS_MAX;
}

// Reads FOLDER/NAME and strips white space around the text; empty if there is no such file.
static struct str read_trimmed(const char *folder, const char *name, size_t limit, struct buf *out)
{
    char path[FOLDER_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || n >= (int)sizeof path || folder_read(path, limit, out, NULL) < 0)
        return (struct str){0};
    return str_trim(buf_str(out));
}

// Searches lines of "COMMIT REFERENCE": the references that have no file of their own.
static bool find_packed(const char *git, struct str reference, char commit[COMMIT_CHARS_MAX + 1])
{
    struct buf text = {0};
    bool found = false;
    for (struct str rest = read_trimmed(git, "packed-refs", PACKED_BYTES, &text);
         rest.data && !found;) {
        struct str line = str_cut(&rest, '\n'), hash = str_word(&line);
        found = is_commit(hash) && str_eq(str_trim(line), reference);
        if (found) {
            memcpy(commit, hash.data, hash.size);
            commit[hash.size] = 0;
        }
    }
    buf_free(&text);
    return found;
}

// `git`: the folder of this work tree; `shared`: the folder with the references of all work trees.
static json_t *read_git(const char *git, const char *shared)
{
    struct buf head = {0}, text = {0};
    char commit[COMMIT_CHARS_MAX + 1] = "";
    struct str at = read_trimmed(git, "HEAD", HEAD_BYTES, &head), branch = {0};
    if (str_starts(at, STR("ref: "))) {
        struct str reference = str_trim(str_slice(at, strlen("ref: "), at.size));
        char name[HEAD_BYTES + 1];
        snprintf(name, sizeof name, "%.*s", STR_ARG(reference));
        at = read_trimmed(shared, name, HEAD_BYTES, &text);
        if (!is_commit(at))
            find_packed(shared, reference, commit);
        branch = str_starts(reference, STR("refs/heads/"))
                     ? str_slice(reference, strlen("refs/heads/"), reference.size)
                     : reference;
    }
    if (is_commit(at))
        snprintf(commit, sizeof commit, "%.*s", STR_ARG(at));
    json_t *out = commit[0] ? json_object() : NULL;
    if (out) {
        add_text(out, "commit", str_of(commit));
        if (is_printable(branch))
            add_text(out, "branch", branch);
    }
    buf_free(&head);
    buf_free(&text);
    return out;
}

// Makes a path that is relative to `folder` absolute.
static bool resolve(const char *folder, struct str path, char out[FOLDER_PATH_MAX])
{
    int n = path.size && path.data[0] == '/'
                ? snprintf(out, FOLDER_PATH_MAX, "%.*s", STR_ARG(path))
                : snprintf(out, FOLDER_PATH_MAX, "%s/%.*s", folder, STR_ARG(path));
    return path.size && n > 0 && n < FOLDER_PATH_MAX;
}

// Finds the folder that `.git` stands for: itself, or the folder that a file `.git` points to (a
// second work tree, a submodule).
static json_t *git_at(const char *folder)
{
    char git[FOLDER_PATH_MAX], shared[FOLDER_PATH_MAX];
    struct buf link = {0}, common = {0};
    struct stat info;
    int n = snprintf(git, sizeof git, "%s/.git", folder);
    if (n < 0 || n >= (int)sizeof git || stat(git, &info) < 0)
        return NULL;
    struct str text = {0};
    if (!S_ISDIR(info.st_mode))
        text = read_trimmed(folder, ".git", HEAD_BYTES, &link);
    bool known = S_ISDIR(info.st_mode) ||
                 (str_starts(text, STR("gitdir: ")) &&
                  resolve(folder, str_slice(text, strlen("gitdir: "), text.size), git));
    if (!known || !resolve(git, read_trimmed(git, "commondir", HEAD_BYTES, &common), shared))
        memcpy(shared, git, sizeof shared);
    json_t *out = known ? read_git(git, shared) : NULL;
    buf_free(&link);
    buf_free(&common);
    return out;
}

json_t *run_metadata_git(const char *directory)
{
    char path[FOLDER_PATH_MAX];
    struct stat first, info;
    int n = snprintf(path, sizeof path, "%s", directory);
    if (n <= 0 || n >= (int)sizeof path || stat(path, &first) < 0)
        return NULL;
    for (;;) {
        struct buf git = {0};
        buf_printf(&git, "%s/.git", path);
        bool is = stat(buf_cstr(&git), &info) == 0;
        buf_free(&git);
        if (is)
            return git_at(path);
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return NULL;
        *slash = 0;
        // Stops at the border of the file system, because the one above may be slow.
        if (stat(path, &info) < 0 || info.st_dev != first.st_dev)
            return NULL;
    }
}

// ---------------------------------------------------------------- the environment

static bool is_kept(struct str name)
{
    static const char *const names[] = {
        "SLURM_JOB_NAME",      "SLURM_JOB_PARTITION", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS",
        "SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_NODE", "SLURM_CLUSTER_NAME",  "PBS_JOBNAME",
        "PBS_QUEUE",           "CONDA_DEFAULT_ENV",   "VIRTUAL_ENV",         "LD_PRELOAD",
        "PYTHONHASHSEED",      "MKL_NUM_THREADS",     "OPENBLAS_NUM_THREADS"};
    static const char *const beginnings[] = {
        "OMP_",      "KMP_",  "GOMP_", "NCCL_", "RCCL_", "UCX_", "FI_",  "MPICH_", "I_MPI_",
        "OMPI_MCA_", "CUDA_", "HIP_",  "ROCR_", "HSA_",  "ZE_",  "XLA_", "TORCH_", "PYTORCH_"};
    static const char *const secrets[] = {"TOKEN", "KEY", "SECRET", "PASS", "CREDENTIAL"};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (memmem(name.data, name.size, secrets[i], strlen(secrets[i])))
            return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(name, str_of(names[i])))
            return true;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (str_starts(name, str_of(beginnings[i])))
            return true;
    return false;
}

static json_t *environment_kept(void)
{
    extern char **environ;
    json_t *out = json_object();
    size_t bytes = 0;
    for (char **at = environ; *at; at++) {
        struct str value = str_of(*at), name = str_cut(&value, '=');
        char text[128];
        if (!value.size || value.size > RUN_METADATA_VARIABLE_MAX || name.size >= sizeof text ||
            !is_kept(name) || !is_printable(name) || !is_printable(value))
            continue;
        bytes += name.size + value.size;
        if (bytes > VARIABLES_BYTES)
            break;
        snprintf(text, sizeof text, "%.*s", STR_ARG(name));
        json_object_set_new(out, text, json_stringn(value.data, value.size));
    }
    return out;
}

// Returns the loaded environment modules: "gcc/13:openmpi/5".
static json_t *modules_loaded(void)
{
    const char *text = getenv("LOADEDMODULES");
    json_t *out = json_array();
    for (struct str rest = text ? str_of(text) : (struct str){0}; rest.data;) {
        struct str one = str_cut(&rest, ':');
        if (one.size && one.size <= RUN_METADATA_VALUE_MAX && is_printable(one) &&
            json_array_size(out) < RUN_METADATA_MODULES_MAX)
            json_array_append_new(out, json_stringn(one.data, one.size));
    }
    return out;
}

static void add_filled(json_t *to, const char *key, json_t *value)
{
    if (json_object_size(value) + json_array_size(value) > 0)
        json_object_set(to, key, value);
    json_decref(value);
}

json_t *run_metadata_run(const char *name, const char *note, const char *tags)
{
    char here[FOLDER_PATH_MAX];
    json_t *out = json_object();
    if (!out)
        return NULL;
    add_text(out, "name", str_of(name ? name : ""));
    add_text(out, "note", str_of(note ? note : ""));
    add_filled(out, "tags", tags_of(tags ? tags : ""));
    if (getcwd(here, sizeof here)) {
        add_text(out, "directory", str_of(here));
        add_filled(out, "git", run_metadata_git(here));
    }
    add_filled(out, "environment", environment_kept());
    add_filled(out, "modules", modules_loaded());
    add_filled(out, "machine", machine_describe(""));
    return out;
}
