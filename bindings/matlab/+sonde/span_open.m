function open_span = span_open(name, varargin)
%SPAN_OPEN  Opens a span that does not nest, for a callback or overlapping work.
%   task = sonde.span_open('task', 'of', 'none'); work(); sonde.span_close(task);
%   part = sonde.span_open('part', task, 'number', 1) opens a span inside of another open span.
%
%   See also sonde.span_close, sonde.span
    open_span = uint8([]);
    if sonde.is_loaded()
        open_span = sonde_mex('span_open', name, varargin{:});
    end
end
