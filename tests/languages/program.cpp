// The program of test_languages.py in C++: program BASE, where BASE is in ns since the epoch.
#include <sonde.hpp>

int main(int argc, char **argv)
{
    using std::chrono::duration_cast;
    using std::chrono::milliseconds;
    if (argc != 2)
        return 2;
    const sonde::time_point base(duration_cast<sonde::time_point::duration>(
        std::chrono::nanoseconds(std::strtoll(argv[1], nullptr, 10))));
    const sonde::gauge loss("loss", {{"model", "sin"}, {"rank", 3}});
    const sonde::gauge written("written", {}, {"bytes", "bytes written so far"});
    const sonde::gauge hidden("hidden", {}, {"", "", 2});
    const sonde::gauge warmth("warmth");
    const sonde::counter steps("steps", {{"exact", true}, {"rate", 0.1}});
    const sonde::gauge left("left"), right("right");
    const sonde::group<2> both(left, right);

    sonde::config({{"lr", 0.01}, {"optimizer", "adam"}});
    for (int i = 1; i <= 10; i++) {
        loss.emit(1.0 / i);
        written.emit(1024.0 * i, base + milliseconds(i));
        hidden.emit(i);
        steps.add(1);
    }
    warmth.set(21.5);
    both.emit({{1, 2}}, base);
    both.emit({{3, sonde::missing()}}, base + milliseconds(1));
    {
        sonde::span epoch("epoch", {{"number", 1}});
        for (int i = 1; i <= 3; i++)
            sonde::span step("step", {{"number", i}, {"phase", std::string("warm up")}});
    }
    sonde::span_at("load", base, base + milliseconds(1500), {{"file", "a b"}});
    sonde::task_span task("task", {{"of", "none"}});
    {
        const sonde::task_span part("part", {}, task);
    }
    sonde::task_span moved = std::move(task);
    moved.close();
    sonde::annotate("done", {{"file", "ck-12"}});
    return 0;
}
