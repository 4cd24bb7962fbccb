% The program of test_languages.py in MATLAB's language: program.m BASE, where BASE is in ns since
% the epoch.
arguments = argv();
ms = int64(1000000);
digits = arguments{end}; % a double cannot hold so many
base = int64(str2double(digits(1:end - 6))) * ms + int64(str2double(digits(end - 5:end)));
loss = sonde.gauge('loss', 'model', 'sin', 'rank', 3);
written = sonde.gauge('written', 'unit', 'bytes', 'help', 'bytes written so far');
hidden = sonde.gauge('hidden', 'level', 2);
warmth = sonde.gauge('warmth');
steps = sonde.counter('steps', 'exact', true, 'rate', 0.1);
both = sonde.group([sonde.gauge('left'), sonde.gauge('right')]);

sonde.config('lr', 0.01, 'optimizer', 'adam');
for i = 1:10
    sonde.emit(loss, 1 / i);
    sonde.emit(written, 1024 * i, base + i * ms);
    sonde.emit(hidden, i);
    sonde.cell_add(steps, 1);
end
sonde.cell_set(warmth, 21.5);
sonde.emit(both, [1, 2], base);
sonde.emit(both, [3, NaN], base + ms);
epoch = sonde.span('epoch', 'number', 1);
for i = 1:3
    sonde.span_begin('step', 'number', i, 'phase', 'warm up');
    sonde.span_end();
end
clear epoch
sonde.span_at('load', base, base + 1500 * ms, 'file', 'a b');
task = sonde.span_open('task', 'of', 'none');
part = sonde.span_open('part', task);
sonde.span_close(part);
sonde.span_close(task);
sonde.annotate('done', 'file', 'ck-12');
