#include "launch/folder_list.h"

#include "base/array.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>

int folder_list(DIR *folder, const struct folder_list_kind *kind, void *user,
                void (*release)(void *element), void **out, size_t *count, struct error *e)
{
    char *list = NULL;
    size_t n = 0, capacity = 0, seen = 0;
    int status = 0;
    for (struct dirent *entry = readdir(folder);
         entry && seen < FOLDER_LIST_ENTRIES_MAX && n < kind->most && status == 0;
         entry = readdir(folder), seen++) {
        if (entry->d_name[0] == '.')
            continue;
        if (!array_room(&list, &capacity, n + 1, kind->size))
            status = error_set(e, -ENOMEM, "out of memory");
        else
            n += kind->look_at(user, entry->d_name, list + n * kind->size);
    }
    closedir(folder);
    if (status < 0)
        for (size_t i = 0; release && i < n; i++)
            release(list + i * kind->size);
    if (status < 0 || n == 0) {
        free(list);
        list = NULL;
        n = 0;
    }
    if (n > 0)
        qsort(list, n, kind->size, kind->compare);
    *out = list;
    *count = n;
    return status;
}

int folder_list_newest_first(int64_t a_start_ns, const char *a_name, int64_t b_start_ns,
                             const char *b_name)
{
    if (a_start_ns != b_start_ns)
        return a_start_ns < b_start_ns ? 1 : -1;
    return str_compare_natural(str_of(a_name), str_of(b_name));
}
