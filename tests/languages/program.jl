# The program of test_languages.py in Julia: program.jl BASE, where BASE is in ns since the epoch.
import Sonde

const MS = 1_000_000

function main(base)
    loss = Sonde.gauge("loss", "model" => "sin", "rank" => 3)
    written = Sonde.gauge("written"; unit="bytes", help="bytes written so far")
    hidden = Sonde.gauge("hidden"; level=2)
    warmth = Sonde.gauge("warmth")
    steps = Sonde.counter("steps", :exact => true, :rate => 0.1)
    both = Sonde.group(Sonde.gauge("left"), Sonde.gauge("right"))

    Sonde.config("lr" => 0.01, "optimizer" => "adam")
    for i in 1:10
        Sonde.emit(loss, 1 / i)
        Sonde.emit(hidden, i)
        Sonde.add(steps, 1)
    end
    Sonde.emit.(written, 1024 .* (1:10), base .+ MS .* (1:10))
    Sonde.set(warmth, 21.5)
    Sonde.emit(both, (1, 2), base)
    Sonde.emit(both, [3, missing], base + MS)
    Sonde.span("epoch", "number" => 1) do
        for i in 1:3
            Sonde.@span "step" "number" => i "phase" => "warm up" begin end
        end
    end
    Sonde.record_span("load", base, base + 1500MS, "file" => "a b")
    task = Sonde.open_span("task", "of" => "none")
    wait(@async Sonde.span(() -> nothing, "part"; parent=task))
    close(task)
    Sonde.annotate("done", "file" => "ck-12")
end

main(parse(Int64, ARGS[1]))
