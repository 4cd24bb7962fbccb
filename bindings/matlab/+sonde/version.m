function text = version()
%VERSION  The version of libsonde: '0.1.0'; '' if sonde_mex could not be loaded.
    text = '';
    if sonde.is_loaded()
        text = sonde_mex('version');
    end
end
