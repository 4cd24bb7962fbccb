# libsonde accepts 16 tags and counts any further one, so it gets at most one more.
const TAGS_MAX = 17

text_of(value::AbstractString) = String(value)
text_of(value) = string(value)
text_of(value::AbstractFloat) = text_of(Float64(value))
text_of(value::Float16) = text_of(Float32(value))

# The shortest form that reads back as the same number, as C prints it: 0.1, 1e-05.
function text_of(value::Union{Float32,Float64})
    isnan(value) && return "nan"
    isinf(value) && return value > 0 ? "inf" : "-inf"
    iszero(value) && return signbit(value) ? "-0" : "0"
    parts = match(r"^(-?)(\d+)\.(\d+)(?:[ef](-?\d+))?$", string(value))
    sign, whole, fraction, power = parts.captures
    all = whole * fraction
    digits = lstrip(all, '0')
    exponent = length(whole) - 1 - (length(all) - length(digits)) +
               (power === nothing ? 0 : parse(Int, power))
    digits = rstrip(digits, '0')
    if -4 <= exponent < 0
        return sign * "0." * '0'^(-exponent - 1) * digits
    elseif 0 <= exponent < 15
        length(digits) <= exponent + 1 && return sign * rpad(digits, exponent + 1, '0')
        return sign * digits[1:exponent+1] * "." * digits[exponent+2:end]
    end
    mantissa = length(digits) == 1 ? digits : digits[1:1] * "." * digits[2:end]
    sign * mantissa * (exponent < 0 ? "e-" : "e+") * lpad(abs(exponent), 2, '0')
end

# Tags as C takes them, an array of C strings: key, value, key, value, … The array is valid as long
# as `texts` is.
struct Tags
    texts::Vector{String}
    array::Vector{Ptr{UInt8}}
end

function Tags(pairs)
    texts = String[]
    for (key, value) in Iterators.take(pairs, TAGS_MAX)
        push!(texts, string(key), text_of(value))
    end
    Tags(texts, pointer.(texts))
end

Base.length(tags::Tags) = length(tags.array) ÷ 2

nanoseconds(time::Integer) = Int64(clamp(time, typemin(Int64), typemax(Int64)))
nanoseconds(time::DateTime) = Int64(value(time - DateTime(1970))) * 1_000_000
