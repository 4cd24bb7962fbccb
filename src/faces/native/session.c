// session.c - /sonde/v1/session: what the client may do here. A page sends it once with a token as
// Bearer, and gets the key with which its browser's session may write (http/sessions.h).
#include "faces/native/handlers.h"

static const struct str role_names[ROLE_COUNT] = {[ROLE_NOBODY] = STR("none"),
                                                  [ROLE_VIEW] = STR("view"),
                                                  [ROLE_WRITE] = STR("write"),
                                                  [ROLE_CONTROL] = STR("control")};

void native_session(struct service *service, struct request *r, struct answer *a)
{
    char key[SESSION_ID_SIZE + 1] = "";
    if (r->method == METHOD_POST && !auth_raise_session(&service->site->auth, r, key)) {
        answer_error(a, 400, "only a page of this server can get a key for its session",
                     "A program needs none: it sends the token with each request.");
        return;
    }
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key_string(&w, "role", role_names[r->role]);
    json_key_bool(&w, "annotations", service->agent_socket.size > 0);
    json_key_bool(&w, "restarts", service->reboot != NULL);
    if (key[0])
        json_key_string(&w, "key", str_of(key));
    json_end_object(&w);
    explicit_bzero(key, sizeof key);
}
