// openapi.c - /sonde/v1/openapi.json: the table of routes as an OpenAPI 3.1 document, which
// therefore always matches the server.
#include "faces/native/handlers.h"

static const struct {
    enum request_method method;
    const char *name;
} methods[] = {
    {METHOD_GET, "get"}, {METHOD_POST, "post"}, {METHOD_PUT, "put"}, {METHOD_DELETE, "delete"}};

// Parses "start! end m!": names; ! marks the required ones.
static void write_parameters(struct json_writer *w, struct str names)
{
    json_key(w, STR("parameters"));
    json_begin_array(w);
    for (struct str name = str_word(&names); name.size; name = str_word(&names)) {
        bool needed = str_ends(name, STR("!"));
        name.size -= needed;
        json_begin_object(w);
        json_key_string(w, "name", name);
        json_key_string(w, "in", STR("query"));
        json_key_bool(w, "required", needed);
        json_key(w, STR("schema"));
        json_put_raw(w, STR("{\"type\":\"string\"}"));
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_operation(struct json_writer *w, const struct route *route, bool body)
{
    json_begin_object(w);
    json_key_string(w, "summary", str_of(route->help));
    if (route->access == ACCESS_OPEN) {
        json_key(w, STR("security"));
        json_put_raw(w, STR("[]"));
    }
    // If GET accepts them as parameters, they are members of the body of a POST.
    if (route->parameters && !(body && route->methods & METHOD_GET))
        write_parameters(w, str_of(route->parameters));
    if (body) {
        json_key(w, STR("requestBody"));
        json_put_raw(w, STR("{\"content\":{\"application/json\":{\"schema\":{}}}}"));
    }
    json_key(w, STR("responses"));
    json_put_raw(w, route->access == ACCESS_OPEN
                        ? STR("{\"200\":{\"description\":\"the answer\"}}")
                        : STR("{\"200\":{\"description\":\"the "
                              "answer\"},\"400\":{\"$ref\":\"#/components/responses/error\"},"
                              "\"401\":{\"$ref\":\"#/components/responses/error\"}}"));
    json_end_object(w);
}

void native_openapi(struct service *service, struct request *r, struct answer *a)
{
    (void)r;
    const struct route *routes = service->site->routes;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key_string(&w, "openapi", STR("3.1.0"));
    json_key(&w, STR("info"));
    json_begin_object(&w);
    json_key_string(&w, "title", STR("sonde"));
    json_key_string(&w, "version", STR(SONDE_VERSION));
    json_end_object(&w);
    json_key(&w, STR("security"));
    json_put_raw(&w, STR("[{\"bearer\":[]}]"));
    json_key(&w, STR("components"));
    json_put_raw(&w,
                 STR("{\"securitySchemes\":{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}},"
                     "\"responses\":{"
                     "\"error\":{\"description\":"
                     "\"what was "
                     "wrong\",\"content\":{\"application/"
                     "json\":{\"schema\":{\"type\":\"object\",\"properties\":{\"error\":{\"type\":"
                     "\"object\",\"properties\":{\"code\":{\"type\":\"integer\"},\"message\":{"
                     "\"type\":\"string\"},"
                     "\"details\":{\"type\":"
                     "\"string\"}}}}}}}}}}"));
    json_key(&w, STR("paths"));
    json_begin_object(&w);
    for (size_t i = 0; i < service->site->route_count; i++) {
        json_key(&w, routes[i].path);
        json_begin_object(&w);
        for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
            if (!(routes[i].methods & methods[m].method))
                continue;
            json_key(&w, str_of(methods[m].name));
            write_operation(&w, &routes[i], methods[m].method & (METHOD_POST | METHOD_PUT));
        }
        json_end_object(&w);
    }
    json_end_object(&w);
    json_end_object(&w);
}
