function count = dropped()
%DROPPED  The number of values that this process has dropped so far; see sonde.h.
    count = 0;
    if sonde.is_loaded()
        count = sonde_mex('dropped');
    end
end
