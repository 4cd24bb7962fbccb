function span_begin(name, varargin)
%SPAN_BEGIN  Begins a span, which sonde.span_end ends.
%   sonde.span_begin('epoch', 'number', 3); work(); sonde.span_end();
%
%   It takes less time than sonde.span, but an error between the two calls leaves the span open.
%
%   See also sonde.span, sonde.span_end
    persistent loaded
    if isempty(loaded)
        loaded = sonde.is_loaded();
    end
    if loaded
        sonde_mex('span_begin', name, varargin{:});
    end
end
