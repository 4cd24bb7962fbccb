#include "cli/commands.h"
#include "cli/statistics_answer.h"
#include "cli/statistics_spans.h"

#include <errno.h>

int command_stats(const struct options *o)
{
    struct error e;
    if (!options_text(o, OPT_STATISTICS_SPANS))
        return statistics_answer(o, STATISTICS_ALL);
    if (options_text(o, OPT_STATISTICS_BY) || options_text(o, OPT_STATISTICS_SPAN)) {
        error_set(&e, -EINVAL, "--spans takes neither --by nor --per-span");
        return command_failed(EXIT_USAGE, &e);
    }
    if (options_flag(o, OPT_JSON) && options_flag(o, OPT_CSV)) {
        error_set(&e, -EINVAL, "--json and --csv contradict each other");
        return command_failed(EXIT_USAGE, &e);
    }
    return statistics_spans(o);
}
