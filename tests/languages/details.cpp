// Tests the additions of sonde.hpp to sonde.h: timers, durations, spans that move, numbers in tags.
#include <sonde.hpp>

#include <stdexcept>

int main()
{
    const sonde::gauge scope_seconds("scope_seconds", {}, {"seconds"});
    const sonde::gauge durations("durations", {}, {"seconds"});
    const sonde::counter busy("busy_seconds", {}, {"seconds"});
    {
        sonde::timer timer(scope_seconds);
    }
    {
        sonde::timer timer(scope_seconds);
        const bool measured = timer.stop().count() > 0;
        if (measured != (sonde::level() > 0) || timer.stop().count() != 0)
            return 1;
    }
    try {
        sonde::timer timer(scope_seconds);
        throw std::runtime_error("a timer ends with its scope, also by an exception");
    } catch (const std::runtime_error &) {
    }
    {
        sonde::timer timer(busy);
    }
    busy.add(std::chrono::minutes(1));
    durations.emit(std::chrono::milliseconds(1500));
    durations.emit(std::chrono::milliseconds(2));

    sonde::task_span outer("first");
    outer = sonde::task_span("second"); // the assignment ends the first span
    {
        sonde::task_span inner("third", {{"number", 3}}, outer), moved(std::move(inner));
    }
    sonde::annotate("numbers", {{"tenth", 0.1},
                                {"third", 1.0 / 3},
                                {"small", 1e-5},
                                {"smaller", -2.5e-300},
                                {"four", 1e-4},
                                {"large", 1e22},
                                {"whole", 1200.0},
                                {"zero", 0u},
                                {"minus", std::int64_t{-9223372036854775807}},
                                {"single", 0.25f},
                                {"yes", true},
                                {"no", false},
                                {"text", "a"}});
    return sonde::dropped() == sonde_dropped() ? 0 : 1;
}
