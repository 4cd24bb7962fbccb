function connected = connect(socket_path, level)
%CONNECT  Connects to the agent that listens at the socket, and emits at the level, 1 to 4.
%   For a program that was started without SONDE_SOCKET and SONDE_LEVEL. Returns false if it failed.
    connected = false;
    if sonde.is_loaded()
        connected = sonde_mex('connect', socket_path, level);
    end
end
