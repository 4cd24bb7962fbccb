# Tests the additions of the package to sonde.h: timers, nesting per task, numbers in tags.
import Sonde

function expect(right, words)
    right && return
    println(stderr, "this is not true: ", words)
    exit(1)
end

function fails(seconds)
    try
        Sonde.timer(seconds) do
            Sonde.@span "inner" error("timers and spans end with their block")
        end
    catch
    end
end

function main()
    scope = Sonde.gauge("scope_seconds"; unit="seconds")
    busy = Sonde.counter("busy_seconds"; unit="seconds")
    expect(Sonde.timer(() -> Sonde.timer(() -> 7, busy), scope) == 7, "a timer returns the value")
    answer = Sonde.span("outer", "text" => "cut\0off") do
        fails(scope)
        8
    end
    expect(answer == 8, "a span returns the value of its block")
    expect(Sonde.current_span() === nothing, "no span is open")
    Sonde.add(busy, 60)

    # libsonde refuses a definition that exceeds a limit, and the program continues.
    many = Sonde.gauge("many", ("k$i" => i for i in 1:20)...)
    expect(!Sonde.ison(many), "20 tags are refused")
    expect(!Sonde.ison(Sonde.gauge("not a name")), "a bad name is refused")
    Sonde.emit(Sonde.group(fill(scope, 5000)...), zeros(5000))
    Sonde.emit(Sonde.group(), ())
    expect(Sonde.ison(scope) == (Sonde.level() > 0), "a metric is on if sonde is")
    if !haskey(ENV, "NO_LIBRARY")
        expect(Sonde.check() === nothing, "an agent records this process: $(Sonde.check())")
    else
        expect(occursin("set SONDE_LIB_DIR", Sonde.check()), "the library is missing")
    end
    Sonde.emit(Sonde.group(Sonde.gauge("first"), Sonde.gauge("second")), [1])

    # Each task has its own nested spans; a span may be closed by another task.
    shared = Sonde.counter("shared")
    tasks = map(1:20) do i
        Threads.@spawn begin
            parent = Sonde.open_span("parent", "i" => i - 1)
            Sonde.span("child", "i" => i - 1; parent=parent) do
                yield()
                foreach(_ -> Sonde.add(shared, 1), 1:100)
            end
            parent
        end
    end
    spans = fetch.(tasks)
    close.(spans)
    foreach(close, spans) # a second call does nothing
    nested = Sonde.gauge("durations"; unit="seconds")
    Sonde.emit(nested, 1.5)

    Sonde.annotate("numbers", "tenth" => 0.1, "third" => 1 / 3, "small" => 1e-5,
        "smaller" => -2.5e-300, "four" => 1e-4, "large" => 1e22, "whole" => 1200.0, "zero" => 0x0,
        "minus" => -9223372036854775807, "single" => 0.25f0, "yes" => true, "no" => false,
        "text" => SubString("ab", 1, 1))
end

main()
