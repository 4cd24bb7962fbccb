#include "export/export.h"

const struct export_format *const export_formats[] = {
    &export_csv,         &export_wide_csv,      &export_parquet,     &export_arrow,
    &export_openmetrics, &export_influx,        &export_perfetto,    &export_chrome_trace,
    &export_sqlite,      &export_dragon_sqlite, &export_tensorboard, NULL};

const struct export_format *export_format_of_path(const char *path)
{
    for (size_t i = 0; export_formats[i]; i++)
        if (str_ends(str_of(path), str_of(export_formats[i]->ending)))
            return export_formats[i];
    return NULL;
}

const struct export_format *export_format_find(const char *name)
{
    for (size_t i = 0; export_formats[i]; i++)
        if (strcmp(export_formats[i]->name, name) == 0)
            return export_formats[i];
    return NULL;
}
