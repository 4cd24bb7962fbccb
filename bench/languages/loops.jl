# Prints "CALL ns" for each call and round; see languages.py.
import Sonde

function measure(call, name, times)
    start = time_ns()
    foreach(call, 1:times)
    println(name, " ", (time_ns() - start) / times)
    sleep(0.002) # the agent drains the ring meanwhile
end

function main()
    gauge, counter = Sonde.gauge("bench_emit"), Sonde.counter("bench_add")
    off = Sonde.gauge("bench_off"; level=4)
    for round in 1:101
        measure(i -> Sonde.emit(gauge, i), "emit", 20000)
        measure(i -> Sonde.add(counter, 1), "add", 20000)
        measure(i -> Sonde.emit(off, i), "off", 20000)
        measure(i -> Sonde.@span("step", "number" => i, nothing), "span", 1000)
    end
end

main()
