function metric = counter(name, varargin)
%COUNTER  Defines a metric that only grows, or finds it. Readers show its rate.
%   steps = sonde.counter('steps', 'exact', true). The arguments are those of sonde.gauge.
%
%   See also sonde.gauge, sonde.cell_add, sonde.timer
    metric = 0;
    if sonde.is_loaded()
        metric = sonde_mex('counter', name, varargin{:});
    end
end
