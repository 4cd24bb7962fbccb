% Prints "CALL ns" for each call and round; see languages.py.
1; % a script, not a file of functions

function report(name, times, start)
    printf('%s %.2f\n', name, toc(start) / times * 1e9);
    pause(0.002); % the agent drains the ring meanwhile
end

gauge = sonde.gauge('bench_emit');
counter = sonde.counter('bench_add');
off = sonde.gauge('bench_off', 'level', 4);
for round = 1:101
    start = tic;
    for i = 1:1000
        sonde.emit(gauge, i);
    end
    report('emit', 1000, start);
    start = tic;
    for i = 1:1000
        sonde.cell_add(counter, 1);
    end
    report('add', 1000, start);
    start = tic;
    for i = 1:1000
        sonde.emit(off, i);
    end
    report('off', 1000, start);
    start = tic;
    for i = 1:200
        step = sonde.span('step', 'number', i);
        step = [];
    end
    report('span', 200, start);
    start = tic;
    sonde.emit(gauge, 1:20000);
    report('vector', 20000, start);
end
