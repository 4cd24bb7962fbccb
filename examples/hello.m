loss = sonde.gauge('loss', 'model', 'sin');
step_seconds = sonde.gauge('step_seconds', 'unit', 'seconds');
for epoch = 1:3
    span = sonde.span('epoch', 'number', epoch);
    for step = 1:10
        timer = sonde.timer(step_seconds);
        pause(0.02);
        timer = [];
        sonde.emit(loss, 1 / (epoch * step));
    end
    span = [];
end
