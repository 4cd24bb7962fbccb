#include <sonde.hpp>
#include <thread>

int main()
{
    const sonde::gauge loss("loss", {{"model", "sin"}});
    const sonde::gauge step_seconds("step_seconds", {}, {"seconds"});
    for (int epoch = 1; epoch <= 3; epoch++) {
        sonde::span span("epoch", {{"number", epoch}});
        for (int step = 1; step <= 10; step++) {
            sonde::timer timer(step_seconds);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            loss.emit(1.0 / (epoch * step));
        }
    }
    return 0;
}
