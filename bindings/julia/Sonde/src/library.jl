# The functions of libsonde, which is loaded when the package is. Without the library, the program
# runs, and sonde records nothing.

const NAMES = (
    :sonde_annotate_tags, :sonde_cell_add, :sonde_cell_set, :sonde_check, :sonde_config_tags,
    :sonde_connect, :sonde_define_sized, :sonde_dropped, :sonde_group, :sonde_level,
    :sonde_put_point, :sonde_put_point_at, :sonde_put_row, :sonde_put_row_at, :sonde_span_at,
    :sonde_span_close, :sonde_span_open,
)
for name in NAMES
    @eval const $name = Ref{Ptr{Cvoid}}(C_NULL)
end

const problem = Ref{Union{Nothing,String}}("sonde is off while Julia precompiles a package")

has_library() = problem[] === nothing

# The folder of SONDE_LIB_DIR; else the libraries beside an installed package, and the loader's.
function candidates()
    folder = get(ENV, "SONDE_LIB_DIR", "")
    isempty(folder) || return [joinpath(folder, "libsonde.so")]
    prefix = normpath(joinpath(@__DIR__, "../../../../.."))
    lib = joinpath(prefix, "lib")
    multiarch = isdir(lib) ? filter(endswith("-linux-gnu"), readdir(lib)) : String[]
    folders = [lib; joinpath(prefix, "lib64"); joinpath.(lib, multiarch)]
    [filter(isfile, joinpath.(folders, "libsonde.so.0")); "libsonde.so.0"]
end

function load()
    reason = ""
    for path in candidates()
        try
            library = Libdl.dlopen(path)
            for name in NAMES
                getfield(Sonde, name)[] = Libdl.dlsym(library, name)
            end
            return nothing
        catch error
            reason = sprint(showerror, error)
        end
    end
    "sonde records nothing of this program: $reason; set SONDE_LIB_DIR to the folder of libsonde.so"
end

function __init__()
    ccall(:jl_generating_output, Cint, ()) == 1 && return
    problem[] = load()
    if problem[] !== nothing && haskey(ENV, "SONDE_LOG")
        println(stderr, "sonde: warning: ", problem[])
    end
end
