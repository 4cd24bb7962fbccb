function span_end()
%SPAN_END  Ends the innermost span that sonde.span_begin began.
%
%   See also sonde.span_begin
    persistent loaded
    if isempty(loaded)
        loaded = sonde.is_loaded();
    end
    if loaded
        sonde_mex('span_end');
    end
end
