// proof.c - proves to a client that this server has the client's token, before the client sends it
// (http/server_proof.h).
#include "faces/native/handlers.h"
#include "http/server_proof.h"

#include <errno.h>

void native_proof(struct service *service, struct request *r, struct answer *a)
{
    struct sockaddr_storage end;
    socklen_t size = sizeof end;
    char address[SERVER_ADDRESS_MAX], proof[SERVER_PROOF_CHARACTERS + 1];
    struct str nonce;
    if (!request_parameter(r, "nonce", &nonce) || !server_nonce_valid(nonce)) {
        answer_error(a, 400, "nonce has to be 32 hexadecimal digits", NULL);
        return;
    }
    if (getsockname(r->fd, (struct sockaddr *)&end, &size) < 0 ||
        !server_address_text((const struct sockaddr *)&end, address)) {
        answer_error(a, 500, "this end of the connection has no address", NULL);
        return;
    }
    a->content_type = "text/plain; charset=utf-8";
    buf_printf(&a->body, "%s\n", address);
    for (enum role role = ROLE_VIEW; role < ROLE_COUNT && auth_needs_token(&service->site->auth);
         role++) {
        server_proof_make(str_of(service->site->auth.token[role]), nonce, str_of(address), proof);
        buf_printf(&a->body, "%s\n", proof);
    }
}
