function config(varargin)
%CONFIG  Records parameters of the run. The last value of a key counts.
%   sonde.config('lr', 0.01, 'optimizer', 'adam')
    if sonde.is_loaded()
        sonde_mex('config', varargin{:});
    end
end
