// job.json and run.json, read back. (Apart from job.c, because jansson and our JSON writer share names.)
#include "launch/job.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static void take_text(const json_t *object, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(out, size, "%s", text ? text : "");
}

static int64_t take_number(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

int job_read(const char *path, struct job *j, struct error *e)
{
    *j = (struct job){0};
    struct buf text;
    int status = folder_read(path, JOB_TEXT_MAX, &text, e);
    if (status < 0)
        return status;
    json_t *root = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, NULL);
    buf_free(&text);
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, JOB_FORMAT) != 0) {
        json_decref(root);
        return error_set(e, -EBADMSG, "%s is not what sonde writes", path);
    }
    take_text(root, "job", j->id, sizeof j->id);
    take_text(root, "host", j->host, sizeof j->host);
    take_text(root, "url", j->url, sizeof j->url);
    take_text(root, "record", j->record, sizeof j->record);
    const char *command = json_string_value(json_object_get(root, "command"));
    j->command = strdup(command ? command : "");
    j->pid = (pid_t)take_number(root, "pid", 0);
    j->level = (int)take_number(root, "level", 0);
    j->rate_s = json_number_value(json_object_get(root, "rate"));
    j->start_ns = take_number(root, "start_ns", 0);
    j->end_ns = take_number(root, "end_ns", 0);
    j->exit_code = (int)take_number(root, "exit_code", -1);
    j->agent_restarts = (int)take_number(root, "agent_restarts", 0);
    json_decref(root);
    if (!j->command)
        return error_set(e, -ENOMEM, "out of memory");
    return 0;
}
