function span_close(open_span)
%SPAN_CLOSE  Closes a span of sonde.span_open, once.
%
%   See also sonde.span_open
    if ~isempty(open_span)
        sonde_mex('span_close', open_span);
    end
end
