% Tests the additions of the package to sonde.h: timers, scopes of spans, vectors of points, numbers
% in tags. details.m BASE, where BASE is in ns since the epoch.
1; % a script, not a file of functions

function expect(right, words)
    if ~right
        fprintf(2, 'this is not true: %s\n', words);
        exit(1);
    end
end

function fails(seconds)
    watch = sonde.timer(seconds);
    inner = sonde.span('inner');
    error('timers and spans end with their scope');
end

function expect_error(words, call)
    message = '';
    try
        call();
    catch failure
        message = failure.message;
    end
    expect(~isempty(strfind(message, words)), words);
end

scope = sonde.gauge('scope_seconds', 'unit', 'seconds');
busy = sonde.counter('busy_seconds', 'unit', 'seconds');
watch = sonde.timer(scope);
added = sonde.timer(busy);
watch = [];
added = [];
outer = sonde.span('outer', 'text', ['cut', char(0), 'off']);
try
    fails(scope);
catch
    % The error is expected.
end
outer = [];
sonde.cell_add(busy, 60);

% libsonde refuses a definition that exceeds a limit, and the program continues.
tags = cell(1, 40);
for i = 1:20
    tags(2 * i - 1:2 * i) = {sprintf('k%d', i), i};
end
expect(sonde.gauge('many', tags{:}) == 0, '20 tags are refused');
expect(sonde.gauge('not a name') == 0, 'a bad name is refused');
expect(sonde.group(repmat(scope, 1, 5000)) == 0, 'a group of 5000 metrics is refused');
expect(sonde.group([]) == 0, 'an empty group is off');
expect((scope > 0) == (sonde.level() > 0), 'a metric is on if sonde is');
expect(isempty(sonde.check()), sonde.check());
sonde.emit(4000000, 1); % a metric of another process
sonde.cell_set(4000000, 1);

% A group: missing values, rows of a matrix. Vectors of points: times of all types.
start = sscanf(argv(){end}(1:10), '%d'); % in seconds
ns = int64(start) * 1000000000;
group = sonde.group([sonde.gauge('first'), sonde.gauge('second')]);
sonde.emit(group, 1, ns);
sonde.emit(group, [2, 20; NaN, 30], ns + [1; 2]);
sonde.emit(group, single([4; 40]), ns + 3);
series = sonde.gauge('series');
sonde.emit(series, [1, 2, 3], start + [0, 0.125, 0.123456]);
sonde.emit(series, int8(4), uint64(ns) + 5);
sonde.emit(series, true, start + 2);
sonde.emit(series, []);
sonde.emit(sonde.gauge('now'), 1:3);

% The object of a round replaces that of the last round, whose span ends later.
for i = 1:3
    round_span = sonde.span('round', 'i', i);
    sonde.span_begin('child', 'i', i);
    sonde.span_end();
end
round_span = [];
sonde.span_end(); % no span has begun
for i = 1:70
    sonde.span_begin('deep');
end
for i = 1:70
    sonde.span_end();
end
sonde.span_close(sonde.span_open('open', sonde.span_open('left_open'), 'i', 1));
unended = sonde.span('last'); % ends with the program

if sonde.level() > 0
    expect_error('not a number', @() sonde.emit(scope, 'text'));
    expect_error('pass ns as int64', @() sonde.emit(scope, 1, double(ns)));
    expect_error('one time for each', @() sonde.emit(scope, [1, 2], ns));
    expect_error('not an open span', @() sonde.span_close(uint8(1:100)));
    expect_error('has no cell', @() sonde.cell_add(group, 1));
end
sonde.annotate('numbers', 'tenth', 0.1, 'third', 1 / 3, 'small', 1e-5, 'smaller', -2.5e-300, ...
    'four', 1e-4, 'large', 1e22, 'whole', 1200, 'zero', uint8(0), ...
    'minus', intmin('int64') + 1, 'single', single(0.25), 'yes', true, 'no', false, 'text', "a");
