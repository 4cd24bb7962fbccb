// reboot.c - /sonde/v1/reboot and Dragon's /api/reboot: request a restart of the job's command,
// without some hosts.
//
// The launcher decides (launch/restart.h), and reports on its standard error; this handler only
// sends the request.
#include "faces/native/handlers.h"
#include "http/json_body.h"

#include <ctype.h>
#include <errno.h>

enum { HOSTS_MAX_BYTES = 4096 }; // bytes in one line to the launcher

// Host names go into a line for the launcher, so they must not contain anything else.
static int check_hosts(struct str hosts, struct error *e)
{
    if (hosts.size > HOSTS_MAX_BYTES)
        return error_set(e, -E2BIG, "more than %d bytes of hosts", HOSTS_MAX_BYTES);
    for (size_t i = 0; i < hosts.size; i++) {
        unsigned char c = (unsigned char)hosts.data[i];
        if (!isalnum(c) && !strchr(".,_:-", c))
            return error_set(e, -EINVAL, "hosts have to be names, separated by commas");
    }
    return 0;
}

static void put_hosts(struct json_writer *w, struct str hosts)
{
    json_begin_array(w);
    while (hosts.size) {
        struct str host = str_cut(&hosts, ',');
        if (host.size)
            json_put_string(w, host);
    }
    json_end_array(w);
}

static void ask(struct service *service, struct str hosts, bool by_dragon, struct answer *a)
{
    struct error e = {0};
    if (!service->reboot) {
        answer_error(
            a, 501, "this job cannot be restarted on other nodes",
            "It was not started with a launcher that restarts jobs (sonde run --resilient).");
        return;
    }
    if (check_hosts(hosts, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    service->reboot(service->reboot_user, hosts);
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key_string(&w, "asked", STR("reboot"));
    json_key(&w, STR("hosts"));
    put_hosts(&w, hosts);
    if (by_dragon) { // the answer that Dragon's clients expect
        json_key_bool(&w, "reboot", true);
        json_key(&w, STR("hostnames"));
        if (hosts.size)
            put_hosts(&w, hosts);
        else
            json_put_null(&w);
        json_key(&w, STR("h_uids"));
        json_put_null(&w);
    }
    json_end_object(&w);
}

void native_reboot(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct str hosts = STR("");
    if (json_body_take(r, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    request_parameter(r, "hosts", &hosts);
    ask(service, hosts, false, a);
}

// Parses a form: hostnames, separated by commas; h_uids are Dragon's own numbers of hosts.
void dragon_reboot(struct service *service, struct request *r, struct answer *a)
{
    struct request form = {0};
    struct error e = {0};
    struct str hosts = STR(""), uids = STR("");
    char *target = arena_printf(&r->arena, "/?%.*s", STR_ARG(str_trim(r->body)));
    int rc = target ? request_parse_target(&form, str_of(target), &e)
                    : error_set(&e, -ENOMEM, "no memory");
    request_parameter(&form, "hostnames", &hosts);
    request_parameter(&form, "h_uids", &uids);
    if (!rc && uids.size)
        rc = error_set(&e, -EINVAL, "h_uids are not known here: give hostnames");
    if (rc)
        answer_failure(a, &e);
    else
        ask(service, hosts, true, a);
    request_free(&form);
}
