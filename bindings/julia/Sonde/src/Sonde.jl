"""
sonde.h for Julia: puts your own numbers on a job's timeline.

    loss = Sonde.gauge("loss", "model" => "sin")
    for epoch in 1:3
        Sonde.span("epoch", "number" => epoch) do
            Sonde.emit(loss, train(epoch))
        end
    end

A metric has points or a cell; do not mix them. A *point* (`emit`) is a value at the time of the
call. A *cell* (`set`, `add`) is updated in place, and the agent samples it. Tags are pairs; numbers
in them get their shortest form.

All functions may be called from any task. None blocks, and none throws an error of sonde. Without
`sonde run` each call is one branch. If the agent cannot keep up, libsonde drops the newest points
and counts them (`dropped`). Text ends at its first NUL.

While Julia precompiles a package, sonde is off: such a package defines its metrics in `__init__`.
"""
module Sonde

using Dates: DateTime, value
import Libdl

include("library.jl")
include("text.jl")
include("metric.jl")
include("span.jl")

"Returns the level of the run, 0 to 4; 0 if sonde is off."
level() = Int(has_library() ? ccall(sonde_level[], Cint, ()) : 0)

ison() = level() > 0

"Returns the number of values that this process has dropped so far; see sonde.h."
dropped() = has_library() ? ccall(sonde_dropped[], UInt64, ()) : UInt64(0)

"""
Checks whether an agent records the values of this process. Returns `nothing` if one does, or if
sonde is off; otherwise the text says what is wrong, and what the user can do.
"""
function check()
    has_library() || return problem[]
    why = zeros(UInt8, 1024)
    status = ccall(sonde_check[], Cint, (Ptr{UInt8}, Csize_t), why, length(why))
    status == 0 ? nothing : GC.@preserve(why, unsafe_string(pointer(why)))
end

"""
Connects to the agent that listens at the socket, for a program that was started without
SONDE_SOCKET and SONDE_LEVEL. Returns false if that failed.
"""
function connect(socket_path::AbstractString, level::Integer)
    status = has_library() ?
             ccall(sonde_connect[], Cint, (Ptr{UInt8}, Cint), String(socket_path), level) : -1
    status == 0
end

"Records an annotation at this instant: `Sonde.annotate(\"saved\", \"file\" => \"ck-12\")`."
function annotate(text::AbstractString, tags::Pair...)
    ison() || return
    all = Tags(tags)
    GC.@preserve all ccall(sonde_annotate_tags[], Cvoid, (Ptr{UInt8}, Ptr{Cvoid}, Csize_t),
        String(text), all.array, length(all))
end

"Records parameters of the run: `Sonde.config(\"lr\" => 0.01)`. The last value of a key counts."
function config(parameters::Pair...)
    ison() || return
    all = Tags(parameters)
    GC.@preserve all ccall(sonde_config_tags[], Cvoid, (Ptr{Cvoid}, Csize_t),
        all.array, length(all))
end

end
