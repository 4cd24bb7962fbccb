#include "client/authorities.h"

#include "client/curl.h"

#include <stdbool.h>
#include <unistd.h>

const char *authorities_first(const char *const *files)
{
    while (*files && access(*files, R_OK) != 0)
        files++;
    return *files;
}

static bool known_to_libcurl(void)
{
#if LIBCURL_VERSION_NUM >= 0x074600 // since 7.70, libcurl reports its own file
    const curl_version_info_data *info = curl.version_info(CURLVERSION_NOW);
    return info->cainfo || info->capath;
#else
    return true;
#endif
}

const char *authorities_default(void)
{
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt",     // Debian, Ubuntu, Arch
        "/etc/pki/tls/certs/ca-bundle.crt",       // Red Hat, Fedora
        "/var/lib/ca-certificates/ca-bundle.pem", // SUSE
        "/etc/ssl/ca-bundle.pem",                 // SUSE before 2014
        "/etc/ssl/cert.pem",                      // Alpine
        NULL,
    };
    return known_to_libcurl() ? NULL : authorities_first(files);
}
