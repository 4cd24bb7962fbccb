#include "base/home.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

const char *home_folder(void)
{
    const char *home = getenv("HOME");
    struct passwd *me = home && *home ? NULL : getpwuid(getuid());
    if (me)
        home = me->pw_dir;
    return home && *home ? home : NULL;
}
