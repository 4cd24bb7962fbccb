function annotate(text, varargin)
%ANNOTATE  Records an annotation at this instant.
%   sonde.annotate('checkpoint written', 'file', 'ck-12')
    if sonde.is_loaded()
        sonde_mex('annotate', text, varargin{:});
    end
end
