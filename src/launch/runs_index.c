#include "launch/runs_index.h"

#include "base/array.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/full_io.h"
#include "launch/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char first_word[] = "sonde runs 1 ";

static void path_of(const char *runs, char out[FOLDER_PATH_MAX + 16])
{
    snprintf(out, FOLDER_PATH_MAX + 16, "%s/.sonde-index", runs);
}

static void forget(const char *runs)
{
    char path[FOLDER_PATH_MAX + 16];
    path_of(runs, path);
    unlink(path);
}

void runs_index_forget(const char *path)
{
    char runs[FOLDER_PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(runs, sizeof runs, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    forget(runs);
}

void runs_index_free(struct runs_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        free(index->lines[i].name);
    free(index->lines);
    *index = (struct runs_index){0};
}

bool runs_index_put(struct runs_index *index, const struct runs_line *line)
{
    char *name = strdup(line->name);
    if (!name || !array_room(&index->lines, &index->capacity, index->count + 1, sizeof *line)) {
        free(name);
        return false;
    }
    index->lines[index->count] = *line;
    index->lines[index->count++].name = name;
    return true;
}

// ---- reading

// The name of a folder in RUNS, which folder_list() would list.
static bool is_name(struct str s)
{
    return s.size > 0 && s.size <= NAME_MAX && s.data[0] != '.' && str_find_char(s, '/') < 0 &&
           !memchr(s.data, 0, s.size);
}

static int take_line(struct runs_index *index, struct str text)
{
    char name[NAME_MAX + 1];
    struct runs_line line = {.name = name};
    uint64_t grade, keep;
    struct str rest = text;
    if (!str_to_i64(str_cut(&rest, ' '), &line.start_ns) || !rest.data ||
        !str_to_u64(str_cut(&rest, ' '), &line.bytes) || !rest.data ||
        !str_to_u64(str_cut(&rest, ' '), &grade) || !rest.data || grade > 3 ||
        !str_to_u64(str_cut(&rest, ' '), &keep) || !rest.data || keep > 1 || line.start_ns < 0 ||
        !is_name(rest))
        return -EBADMSG;
    line.grade = (int)grade;
    line.keep = keep;
    memcpy(name, rest.data, rest.size);
    name[rest.size] = 0;
    return runs_index_put(index, &line) ? 0 : -ENOMEM;
}

static int take_text(struct runs_index *index, struct str text, int64_t now_ns)
{
    struct str rest = text, first = str_cut(&rest, '\n');
    size_t size = sizeof first_word - 1;
    // A file that a launcher is writing, or could not finish, has no newline at its end.
    if (!text.size || text.data[text.size - 1] != '\n' ||
        !str_starts(first, (struct str){first_word, size}) ||
        !str_to_i64(str_slice(first, size, first.size), &index->read_ns))
        return -EBADMSG;
    if (index->read_ns < 0 || index->read_ns > now_ns ||
        now_ns - index->read_ns > RUNS_INDEX_HOURS * INT64_C(3600) * NS_PER_S)
        return -ESTALE;
    int status = 0;
    while (rest.size && !status)
        status = take_line(index, str_cut(&rest, '\n'));
    return status;
}

// By name; of equal names, the later line comes first.
static int by_name(const void *a, const void *b)
{
    const struct runs_line *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order ? order : (*x < *y) - (*x > *y);
}

// Removes all lines of a name but the last one.
static int drop_older_lines(struct runs_index *index)
{
    struct runs_line **sorted = calloc(index->count ? index->count : 1, sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < index->count; i++)
        sorted[i] = &index->lines[i];
    qsort(sorted, index->count, sizeof *sorted, by_name);
    for (size_t i = index->count; i-- > 1;) {
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) == 0) {
            free(sorted[i]->name);
            sorted[i]->name = NULL;
        }
    }
    free(sorted);
    size_t kept = 0;
    for (size_t i = 0; i < index->count; i++)
        if (index->lines[i].name)
            index->lines[kept++] = index->lines[i];
    index->count = kept;
    return 0;
}

int runs_index_read(const char *runs, int64_t now_ns, struct runs_index *out)
{
    char path[FOLDER_PATH_MAX + 16];
    struct stat info;
    struct buf text = {.limit = RUNS_INDEX_BYTES_MAX};
    *out = (struct runs_index){0};
    path_of(runs, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int status = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid()
                     ? full_read(fd, &text)
                     : -EBADMSG;
    close(fd);
    if (!status)
        status = take_text(out, buf_str(&text), now_ns);
    if (!status)
        status = drop_older_lines(out);
    buf_free(&text);
    if (status)
        runs_index_free(out);
    return status;
}

// ---- writing

static void print_line(struct buf *text, const struct runs_line *line)
{
    if (!is_name(str_of(line->name)) || strchr(line->name, '\n'))
        text->failed = true;
    buf_printf(text, "%" PRId64 " %" PRIu64 " %d %d %s\n", line->start_ns, line->bytes, line->grade,
               line->keep, line->name);
}

void runs_index_write(const char *runs, const struct runs_index *index)
{
    char path[FOLDER_PATH_MAX + 16];
    struct buf text = {0};
    path_of(runs, path);
    buf_printf(&text, "%s%" PRId64 "\n", first_word, index->read_ns);
    for (size_t i = 0; i < index->count; i++)
        print_line(&text, &index->lines[i]);
    if (text.failed || atomic_file_write(path, buf_str(&text), 0) < 0)
        forget(runs);
    buf_free(&text);
}

void runs_index_add(const char *runs, const struct runs_line *line)
{
    char path[FOLDER_PATH_MAX + 16];
    struct buf text = {0};
    path_of(runs, path);
    print_line(&text, line);
    // One write() at the end of the file, so that launchers do not mix their lines.
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool added = fd >= 0 && !text.failed && write(fd, text.data, text.size) == (ssize_t)text.size;
    if (fd >= 0)
        close(fd);
    if (!added)
        forget(runs);
    buf_free(&text);
}
