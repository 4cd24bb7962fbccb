"A value that goes up and down: a loss, a temperature."
struct Gauge
    handle::UInt32
end

"A value that only grows: bytes read, iterations done. Readers show its rate."
struct Counter
    handle::UInt32
end

"Metrics that are measured together: one timestamp for all their values."
struct Group
    handle::UInt32
    count::Int
end

const Metric = Union{Gauge,Counter}

Base.broadcastable(metric::Union{Metric,Group}) = Ref(metric)

# struct sonde_metric
struct NativeMetric
    name::Ptr{UInt8}
    unit::Ptr{UInt8}
    help::Ptr{UInt8}
    kind::Cint
    level::Cint
    tags::Ptr{Cvoid}
    tag_count::Csize_t
end

function define(kind, name, tags, unit, help, level)
    ison() || return UInt32(0)
    all = Tags(tags)
    texts = (String(name), String(unit), String(help))
    GC.@preserve all texts begin
        metric = NativeMetric(pointer.(texts)..., kind, level, pointer(all.array), length(all))
        ccall(sonde_define_sized[], UInt32, (Ref{NativeMetric}, Csize_t), metric, sizeof(metric))
    end
end

"""
Defines a gauge, or finds it: `Sonde.gauge("loss", "rank" => 3; unit="bytes")`. Call it once, not
per point. `level`, 1 to 4: the metric is off in runs below this level.
"""
gauge(name::AbstractString, tags::Pair...; unit="", help="", level=1) =
    Gauge(define(0, name, tags, unit, help, level))

"Defines a counter, or finds it, as `gauge` does."
counter(name::AbstractString, tags::Pair...; unit="", help="", level=1) =
    Counter(define(1, name, tags, unit, help, level))

"Makes a group of at most 4096 metrics."
function group(metrics::Metric...)
    handles = UInt32[metric.handle for metric in metrics]
    ison() || return Group(0, 0)
    handle = ccall(sonde_group[], UInt32, (Ptr{UInt32}, Csize_t), handles, length(handles))
    Group(handle, length(handles))
end

"False if sonde is off, the level is above the run's, or the definition is invalid."
ison(metric::Union{Metric,Group}) = metric.handle != 0

"""
    emit(metric, value[, time])
    emit(group, values[, time])

Emits a point with the current time, or with a given one: ns since the epoch, or a `DateTime` in
UTC. `emit.(loss, values, times)` emits many. A group takes one value for each metric, in its order;
`missing`, and each value that lacks at the end, is a value that could not be read.
"""
function emit(metric::Metric, value::Real)
    ison(metric) && ccall(sonde_put_point[], Cvoid, (UInt32, Cdouble), metric.handle, value)
    nothing
end

function emit(metric::Metric, value::Real, time)
    ison(metric) && ccall(sonde_put_point_at[], Cvoid, (UInt32, Cdouble, Int64),
        metric.handle, value, nanoseconds(time))
    nothing
end

function emit(group::Group, values)
    ison(group) && ccall(sonde_put_row[], Cvoid, (UInt32, Ptr{Cdouble}),
        group.handle, row(group, values))
    nothing
end

function emit(group::Group, values, time)
    ison(group) && ccall(sonde_put_row_at[], Cvoid, (UInt32, Ptr{Cdouble}, Int64),
        group.handle, row(group, values), nanoseconds(time))
    nothing
end

# SONDE_MISSING_BITS
const MISSING = reinterpret(Float64, 0x7ff8736f6e646500)

function row(group, values)
    filled = fill(MISSING, group.count)
    for (i, value) in zip(1:group.count, values)
        ismissing(value) || (filled[i] = value)
    end
    filled
end

"Sets the metric's cell, which the agent samples."
function set(metric::Metric, value::Real)
    ison(metric) && ccall(sonde_cell_set[], Cvoid, (UInt32, Cdouble), metric.handle, value)
    nothing
end

"Adds an amount to the metric's cell."
function add(metric::Metric, amount::Real)
    ison(metric) && ccall(sonde_cell_add[], Cvoid, (UInt32, Cdouble), metric.handle, amount)
    nothing
end

"""
    timer(f, metric)

Measures the seconds of `f()`, also if it throws. A gauge gets a point, a counter's cell grows.
"""
function timer(f, metric::Metric)
    ison(metric) || return f()
    start = time_ns()
    try
        f()
    finally
        take(metric, (time_ns() - start) / 1e9)
    end
end

take(gauge::Gauge, seconds) = emit(gauge, seconds)
take(counter::Counter, seconds) = add(counter, seconds)
