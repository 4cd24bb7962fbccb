# struct sonde_span
struct NativeSpan
    id::UInt64
    parent::UInt64
    start::Int64
    process::UInt32
end

"A named period of time, until it is closed. Any task may close it."
struct Span
    native::NativeSpan
    name::String
    tags::Tags
    closed::Threads.Atomic{Bool}
end

const OFF = Span(NativeSpan(0, 0, 0, 0), "", Tags(()), Threads.Atomic{Bool}(true))

const KEY = :sonde_span # in the storage of a task: its innermost span

"Returns the innermost span that this task has begun, or `nothing`."
current_span() = get(task_local_storage(), KEY, nothing)::Union{Nothing,Span}

"""
Opens a span of no task, for a callback or for work that moves between tasks. `close` ends it;
further calls do nothing.
"""
open_span(name::AbstractString, tags::Pair...; parent::Union{Nothing,Span}=nothing) =
    ison() ? opened(String(name), Tags(tags), parent) : OFF

function opened(name, tags, parent)
    around = parent === nothing || parent.native.id == 0 ? C_NULL : Ref(parent.native)
    native = GC.@preserve tags ccall(sonde_span_open[], NativeSpan,
        (Ptr{UInt8}, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}), name, tags.array, length(tags), around)
    Span(native, name, tags, Threads.Atomic{Bool}(native.id == 0))
end

function Base.close(span::Span)
    Threads.atomic_xchg!(span.closed, true) && return
    tags = span.tags
    GC.@preserve tags ccall(sonde_span_close[], Cvoid,
        (Ref{NativeSpan}, Ptr{UInt8}, Ptr{Cvoid}, Csize_t),
        span.native, span.name, tags.array, length(tags))
end

function enter(name, tags...; parent=current_span())
    ison() || return nothing
    outer = current_span()
    span = opened(String(name), Tags(tags), parent)
    task_local_storage(KEY, span)
    (span, outer)
end

leave(::Nothing) = nothing
function leave((span, outer))
    close(span)
    outer === nothing ? delete!(task_local_storage(), KEY) : task_local_storage(KEY, outer)
    nothing
end

"""
    span(f, name, tags...; parent=current_span())

Calls `f()` in a span, and returns its value. The span ends also if `f` throws. Spans nest per task;
a new task passes the `current_span()` of its creator as `parent`.

    Sonde.span("epoch", "number" => 3) do … end
"""
function span(f, name::AbstractString, tags::Pair...; parent::Union{Nothing,Span}=current_span())
    entered = enter(name, tags...; parent=parent)
    try
        f()
    finally
        leave(entered)
    end
end

"""
    Sonde.@span name tags... begin … end

A span around an expression. Unlike `span`, it needs no function, so that variables that the
expression assigns keep their type.
"""
macro span(name, arguments...)
    isempty(arguments) && throw(ArgumentError("@span needs an expression"))
    tags = map(esc, arguments[1:end-1])
    quote
        local entered = enter($(esc(name)), $(tags...))
        try
            $(esc(arguments[end]))
        finally
            leave(entered)
        end
    end
end

"Records a completed span; its times are as in `emit`. It does not nest."
function record_span(name::AbstractString, start, stop, tags::Pair...)
    ison() || return
    all = Tags(tags)
    GC.@preserve all ccall(sonde_span_at[], Cvoid, (Ptr{UInt8}, Int64, Int64, Ptr{Cvoid}, Csize_t),
        String(name), nanoseconds(start), nanoseconds(stop), all.array, length(all))
end
