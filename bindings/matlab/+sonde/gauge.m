function metric = gauge(name, varargin)
%GAUGE  Defines a metric that goes up and down, or finds it.
%   loss = sonde.gauge('loss', 'model', 'sin', 'rank', 3) has tags of text, numbers and logicals.
%   The keys 'unit', 'help' and 'level' describe the metric instead:
%   written = sonde.gauge('written', 'unit', 'bytes', 'help', 'bytes written so far');
%
%   Level is 1 to 4: the metric is off in runs below this level. A metric is a number, which is
%   valid in this process; 0 is off. Define metrics once, outside of loops.
%
%   See also sonde.counter, sonde.group, sonde.emit, sonde.cell_set, sonde.timer
    metric = 0;
    if sonde.is_loaded()
        metric = sonde_mex('gauge', name, varargin{:});
    end
end
