// Prints "CALL ns" for each call and round; see languages.py.
#include <sonde.hpp>

#include <thread>

template <class Call> static void measure(const char *name, int times, Call call)
{
    using namespace std::chrono;
    const auto start = steady_clock::now();
    for (int i = 0; i < times; i++)
        call(i);
    const auto spent = duration<double, std::nano>(steady_clock::now() - start);
    std::printf("%s %.2f\n", name, spent.count() / times);
    std::this_thread::sleep_for(milliseconds(2)); // the agent drains the ring meanwhile
}

int main()
{
    const sonde::gauge gauge("bench_emit"), off("bench_off", {}, {"", "", 4});
    const sonde::counter counter("bench_add");
    for (int round = 0; round < 101; round++) {
        measure("emit", 20000, [&](int i) { gauge.emit(i); });
        measure("add", 20000, [&](int) { counter.add(1); });
        measure("off", 20000, [&](int i) { off.emit(i); });
        measure("span", 1000, [&](int i) { sonde::span span("step", {{"number", i}}); });
    }
    return 0;
}
