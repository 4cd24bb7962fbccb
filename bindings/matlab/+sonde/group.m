function metric = group(metrics)
%GROUP  Makes a group of at most 4096 metrics that are measured together.
%   both = sonde.group([left, right]). One call of sonde.emit(both, [1, 2]) emits a value for each.
%
%   See also sonde.emit
    metric = 0;
    if sonde.is_loaded()
        metric = sonde_mex('group', metrics);
    end
end
