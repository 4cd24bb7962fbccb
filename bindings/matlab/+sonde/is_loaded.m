function [loaded, reason] = is_loaded()
%IS_LOADED  Whether sonde_mex could be loaded, and the reason if not. Users call sonde.check.
    persistent kept
    if ~ischar(kept)
        kept = '';
        try
            sonde_mex('level');
        catch failure
            message = strrep(failure.message, sprintf('\n'), ' ');
            if ~exist('sonde_mex')
                message = 'sonde_mex is not on the path';
            end
            kept = ['sonde records nothing of this program: ', message, ...
                '; build sonde_mex.c, and add the folder of the result to the path'];
            if ~isempty(getenv('SONDE_LOG'))
                fprintf(2, 'sonde: warning: %s\n', kept);
            end
        end
    end
    reason = kept;
    loaded = isempty(kept);
end
