function object = span(name, varargin)
%SPAN  Begins a span, which ends when the object is cleared or goes out of scope.
%   epoch = sonde.span('epoch', 'number', 3); work(); epoch = [];
%
%   The span is inside of the innermost span of the program that has not ended. Assign the object to
%   a variable; the span ends when the variable gets another value, too.
%
%   See also sonde.span_begin, sonde.span_open, sonde.span_at, sonde.timer
    persistent loaded
    if isempty(loaded)
        loaded = sonde.is_loaded();
    end
    object = [];
    if loaded
        id = sonde_mex('scope_begin', name, varargin{:});
        if id
            object = onCleanup(@() sonde_mex('scope_end', id));
        end
    end
end
