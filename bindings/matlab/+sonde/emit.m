function emit(metric, values, times)
%EMIT  Emits points of a metric, or of the metrics of a group.
%   sonde.emit(loss, 0.5) emits a point with the current time.
%   sonde.emit(loss, 0.5, time) emits it with a given time: int64 ns since the epoch, or a double of
%   seconds since the epoch, which is rounded to microseconds. In MATLAB, it may be a datetime.
%   sonde.emit(loss, values, times) emits a point for each element.
%
%   sonde.emit(both, [1, 2]) emits a value for each metric of a group, in the group's order. NaN
%   stands for a value that could not be read, and is the value of metrics for which none is passed.
%   A matrix has a row for each time, and a column for each metric.
%
%   See also sonde.gauge, sonde.group
    if metric
        if nargin < 3
            sonde_mex('emit', metric, values);
        else
            sonde_mex('emit', metric, values, times);
        end
    end
end
