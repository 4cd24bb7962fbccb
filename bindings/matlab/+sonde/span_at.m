function span_at(name, from, to, varargin)
%SPAN_AT  Records a completed span. It does not nest.
%   sonde.span_at('load', from, to, 'file', 'a.csv'). Times are those of sonde.emit.
%
%   See also sonde.span, sonde.emit
    if sonde.is_loaded()
        sonde_mex('span_at', name, from, to, varargin{:});
    end
end
