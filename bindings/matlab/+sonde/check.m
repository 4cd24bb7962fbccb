function reason = check()
%CHECK  Checks whether an agent records the values of this process.
%   Returns '' if one does, or if sonde is off; otherwise what is wrong, and what the user can do.
    [loaded, reason] = sonde.is_loaded();
    if loaded
        reason = sonde_mex('check');
    end
end
