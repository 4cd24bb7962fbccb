#include "cli/commands.h"
#include "cli/statistics_answer.h"

int command_peaks(const struct options *o)
{
    return statistics_answer(o, STATISTICS_PEAKS);
}
