function object = timer(metric)
%TIMER  Measures the seconds until the object is cleared or goes out of scope.
%   watch = sonde.timer(step_seconds); work(); watch = [];
%
%   A gauge gets a point, the cell of a counter grows.
%
%   See also sonde.span
    object = [];
    if metric
        start = sonde_mex('timer_begin');
        object = onCleanup(@() sonde_mex('timer_end', metric, start));
    end
end
