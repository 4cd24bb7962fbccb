function number = level()
%LEVEL  The level of the run, 0 to 4; 0 if sonde is off.
    number = 0;
    if sonde.is_loaded()
        number = sonde_mex('level');
    end
end
