#include "cli/commands.h"
#include "cli/statistics_answer.h"

int command_stats(const struct options *o)
{
    return statistics_answer(o, STATISTICS_ALL);
}
