// Tests the modules of the page without a browser, and the output of embed.py.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { built, endAll, folder, need } from './harness.mjs';

need('page');
process.env.TZ = 'Europe/Berlin';
const web = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../web');
const out = folder();
const load = async (name, source = `${web}/src/${name}.ts`) => {
  const file = path.join(out, `${name}.mjs`);
  const esbuild = path.join(process.env.PAGE_PACKAGES, 'node_modules/esbuild/bin/esbuild');
  const done = spawnSync(esbuild, [source, '--bundle', '--format=esm', `--outfile=${file}`, '--log-level=warning']);
  assert.equal(done.status, 0, String(done.stderr));
  return import(pathToFileURL(file));
};
const format = await load('format');
const scale = await load('scale');
const model = await load('model');
const plan = await load('plan');
const lines = await load('lines');
const columns = await load('columns');
const job = await load('job');
const events = await load('events');
const catalogue = await load('catalogue');
const spans = await load('spans');
const heat = await load('heatmap');
const server = await load('server');
const compare = await load('compare');
const exporting = await load('export');
const findings = await load('findings');
const frames = await load('frames');
const nodeGroups = await load('node_groups');
const outliers = await load('outliers');
const axis = await load('axis');
const gaps = await load('gaps');
after(endAll);

// A generator of random numbers (mulberry32). The campaign runs the tests with new seeds.
const seed = Number(process.env.SONDE_TEST_SEED ?? 19);
const rounds = Number(process.env.SONDE_TEST_ROUNDS ?? 1);
function random(from) {
  let a = from >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

test('the labels of an axis differ', () => {
  const GIB = 2 ** 30;
  for (const [values, unit, texts] of [
    [[0, 20, 40], 'percent', ['0 %', '20 %', '40 %']],
    [[13.5 * GIB, 13.5 * GIB + 2 ** 20, 13.5 * GIB + 2 ** 21], 'bytes', ['13.5 GiB', '13.501 GiB', '13.502 GiB']],
    [[1e6, 1e6 + 1, 1e6 + 2], '', ['1 M', '1.000001 M', '1.000002 M']],
    [[0.99999, 0.999995, 1], 'ratio', ['0.99999 ratio', '0.999995 ratio', '1 ratio']],
    [[41.0001, 41.0002], 'seconds', ['41.0001 s', '41.0002 s']],
    [[7200, 7201], 'seconds', ['2 h 00 min', '2 h 00 min']],
  ])
    assert.deepEqual(format.ticks(values, unit), texts);
});

test('the time axis leaves out labels where the cross-hair writes its time', () => {
  const drawn = (taken) => {
    const all = [];
    const context = { measureText: (text) => ({ width: 6 * text.length }), fillText: (text, at) => all.push([at, at + 6 * text.length]) };
    axis.drawTimeAxis(context, { quiet: '' }, { from: 0, to: 600e3 }, null, 400, 0, taken);
    return all;
  };
  const all = drawn(null);
  const taken = { from: all[1][0] + 20, to: all[1][1] + 20 };
  assert.ok(all.length >= 3);
  assert.deepEqual(drawn(taken), all.filter(([from, to]) => to <= taken.from || from >= taken.to));
  assert.ok(drawn(taken).length < all.length);
});

test('numbers have three digits and a unit', () => {
  const rows = [
    [0, '', '0'], [1, '', '1'], [0.5, '', '0.5'], [1234, '', '1.23 k'], [999.6, '', '1 k'], [1e9, '', '1 G'], [-1500, '', '-1.5 k'],
    [0.00123, '', '0.00123'], [0.0000012, '', '1.20e-6'], [1e30, '', '1.00e30'],
    [0, 'bytes', '0 B'], [1023, 'bytes', '1023 B'], [1536, 'bytes', '1.5 KiB'], [23.5 * 2 ** 30, 'bytes', '23.5 GiB'],
    [2048, 'bytes/s', '2 KiB/s'], [99.96, 'percent', '100 %'], [6.6, 'percent', '6.6 %'], [12.345, 'percent', '12.3 %'],
    [0.000123, 'seconds', '123 µs'], [0.0123, 'seconds', '12.3 ms'], [75, 'seconds', '1 min 15 s'], [59.96, 'seconds', '1 min 00 s'],
    [3725, 'seconds', '1 h 02 min'], [90000, 'seconds', '1 d 1 h'], [1.2e9, 'hertz', '1.2 GHz'], [350, 'watts', '350 W'],
    [42, 'celsius', '42 °C'], [8, '/s', '8 /s'], [0.004, '/s', '0.004 /s'], [1.5, 's/s', '1.5 s/s'], [20000, '/s', '20 k/s'],
    [NaN, 'bytes', '–'], [null, '', '–'], [undefined, '', '–'], [Infinity, '', '∞'], [3.2, 'images', '3.2 images'],
  ];
  for (const [value, unit, text] of rows) assert.equal(format.value(value, unit), text, `${value} ${unit}`);
});

test('times are local', () => {
  assert.equal(format.clock(Date.UTC(2026, 10, 22, 13, 3, 5, 250)), '14:03:05');
  assert.equal(format.clock(Date.UTC(2026, 10, 22, 13, 3, 5, 250), 100), '14:03:05.250');
  assert.equal(format.clock(Date.UTC(2026, 10, 22, 23, 30), 3600e3, true), '2026-11-23 00:30');
});

test('times since the start', () => {
  const rows = [
    [0, 1000, '+0:00'], [185000, 1000, '+3:05'], [3723000, 1000, '+1:02:03'], [-5000, 1000, '-0:05'], [2 * 86400e3 + 4 * 3600e3, 60e3, '+2 d 04:00'],
    [1500, 100, '+0:01.500'], [59999.9, 1000, '+1:00'], [0.25, 0.001, '+0:00.000250'],
  ];
  for (const [ms, step, text] of rows) assert.equal(format.elapsed(ms, step), text, `${ms}`);
});

test('two runs lie over each other from their starts', () => {
  const node = (job, host, first, last) => ({ job, host, state: 'closed', series: 1, first_ns: first * 1e6, last_ns: last * 1e6 });
  const nodes = [node('b', 'n1', 5000, 9000), node('b', 'n2', 4000, 8000), node('a', 'n1', 1000, 2000), { host: 'n3', job: 'c' }];
  const runs = compare.runsOf(nodes, null);
  assert.deepEqual(runs, [{ job: 'a', from: 1000, to: 2000, live: false }, { job: 'b', from: 4000, to: 9000, live: false }]);
  // A run is live as long as one of its nodes is.
  assert.deepEqual(compare.runsOf([nodes[0], { ...nodes[1], state: 'live' }, nodes[2]], null).map((r) => r.live), [false, true]);
  const sides = compare.sidesOf(['b', 'a'], runs);
  assert.deepEqual(sides.map((s) => s.shift), [0, -3000]);
  assert.deepEqual(compare.wholeOf(sides), { from: 4000, to: 9000 });
  assert.deepEqual(compare.moved([{ key: '', tags: {}, t: [1500], mean: [1], low: [0], high: [2] }], sides[1]), [{ key: 'job=a', tags: { job: 'a' }, t: [4500], mean: [1], low: [0], high: [2] }]);
  for (const names of [[], ['a'], ['a', 'gone'], ['c', 'a']]) assert.equal(compare.sidesOf(names, runs), null);
  // If the start of the command is known for both runs, it counts as the start of the run.
  const status = { runs: [{ job: 'a', start_ns: 500e6 }, { job: 'b', start_ns: 3000e6 }] };
  assert.deepEqual(compare.runsOf(nodes.slice(0, 3), status).map((r) => r.from), [500, 3000]);
  status.runs[0].start_ns = 1078e6; // the command may start after the agent's first sample
  assert.deepEqual(compare.runsOf(nodes.slice(0, 3), status).map((r) => r.from), [1078, 3000]);
  assert.deepEqual(compare.runsOf(nodes.slice(0, 3), { runs: status.runs.slice(1) }).map((r) => r.from), [1000, 4000]);
});

test('a table has whole buckets, quoted cells, and no number where a value is missing', () => {
  const line = { key: '', tags: { host: 'a,b', note: '"x"' }, t: [0, 1000, 2000, 3000], mean: [1, 2, NaN, 4], low: [1, 1, NaN, 4], high: [1, 3, NaN, 4] };
  assert.equal(
    exporting.csv([{ metric: { name: 'loss' }, lines: [line], intervalMs: 1000 }], { from: 500, to: 2999 }),
    'metric,tags,time_ms,mean,least,greatest\r\nloss,"host=a,b,note=""x""",1000,2,1,3\r\nloss,"host=a,b,note=""x""",2000,,,\r\n',
  );
});

test('names are sorted by their numbers, and without regard to case', () => {
  const next = random(seed);
  const pick = (from) => from[Math.floor(next() * from.length)];
  const word = () => Array.from({ length: Math.floor(next() * 6) }, () => pick(['a', 'B', 'b', 'n', '0', '1', '2', '10', '007', '9'])).join('');
  const { compare } = new Intl.Collator('en', { numeric: true, sensitivity: 'accent' });
  for (let round = 0; round < 20000 * rounds; round++) {
    const [a, b] = [word(), word()];
    const order = lines.compareNatural(a, b);
    if (compare(a, b)) assert.equal(Math.sign(order), compare(a, b), `${a} ${b}`);
    else assert.equal(order === 0, a === b, `${a} ${b}`); // different names have an order
    assert.equal(Math.sign(lines.compareNatural(b, a)), -Math.sign(order) + 0, `${a} ${b}`);
  }
  assert.deepEqual(['n10', 'n9', 'N1', 'n', 'n-2', 'gpu 1'].sort(lines.compareNatural), ['gpu 1', 'n', 'n-2', 'N1', 'n9', 'n10']);
});

test('a frame draws as many charts as leave the screen its rate, and leaves none out', () => {
  const timers = [];
  globalThis.requestAnimationFrame = (f) => timers.push(f);
  const count = 111;
  const times = new Array(count).fill(0);
  let now = 0;
  let drew = 0;
  let drawn = 0;
  let cost = 2; // ms a chart
  const parts = times.map((_, i) => ({
    pixels: () => 400,
    draw: () => {
      times[i]++;
      drew++;
      drawn++;
      return false;
    },
  }));
  const all = new frames.Frames(() => parts, () => ({ shown: null, range: { from: now, to: now + 60000 }, follows: false }));
  // Every chart is stale before each frame.
  let late = 0;
  let missed = 0;
  const draw = (i) => {
    all.mark();
    drew = 0;
    timers.shift()(now);
    const took = Math.max(1000 / 60, drew * cost);
    if (i > 50 && took > 40) late++;
    if (i > 50 && took > 25) missed++;
    now += took;
  };
  for (let i = 0; i < 2000; i++) draw(i);
  assert.equal(late, 0); // a frame that drew all charts would take 222 ms
  assert.ok(missed <= 10, `${missed} frames missed the screen's next one`);
  missed = 0;
  for (let i = 0; i < 4800; i++) draw(2000 + i); // 80 s
  assert.ok(missed > 0 && missed <= 6, `${missed} frames missed the screen's next one: one in 16 s`);
  // If drawing becomes cheaper, the page finds out, and then draws more charts again.
  cost = 0.2;
  const before = drawn;
  for (let i = 0; i < 2 * 16 * 60; i++) draw(2000);
  assert.ok(drawn - before > 2 * 8 * 2 * 16 * 60, `${drawn - before} charts: at most 8 a frame before`);
  assert.ok(Math.max(...times) - Math.min(...times) <= 1, 'in turns');
  // When all stale charts are drawn, no frame is requested.
  for (let i = 0; timers.length; i++) {
    assert.ok(i < count);
    timers.shift()((now += 1000 / 60));
  }
  // A frame measures all charts before it draws the first one.
  const order = [];
  const measured = ['a', 'b'].map((name) => ({ pixels: () => (order.push(`measures ${name}`), 400), draw: () => (order.push(`draws ${name}`), false) }));
  new frames.Frames(() => measured, () => ({ shown: null, range: { from: 0, to: 1 }, follows: false })).mark();
  timers.shift()(now);
  assert.deepEqual(order, ['measures a', 'measures b', 'draws a', 'draws b']);
  delete globalThis.requestAnimationFrame;
});

test('outliers of a band are those far from the median, farthest first', () => {
  const next = random(seed);
  for (let round = 0; round < 200 * rounds; round++) {
    const count = 9 + Math.floor(next() * 300);
    const level = 10 ** (next() * 8 - 4);
    const calm = Array.from({ length: count }, () => level * (1 + 0.05 * (next() - 0.5)));
    assert.deepEqual(outliers.farthest(calm), [], `seed ${seed}`); // uniform noise has no outliers
    const far = new Map();
    const many = 1 + Math.floor(next() * 3);
    for (let k = 0; k < many; k++) far.set(Math.floor(next() * count), level * (k % 2 ? 3 + 2 * k : -1 - 2 * k));
    const values = calm.map((v, i) => far.get(i) ?? v);
    const wanted = [...far].sort((a, b) => Math.abs(b[1] - level) - Math.abs(a[1] - level)).map(([i]) => i);
    assert.deepEqual(outliers.farthest(values), wanted, `seed ${seed}`);
    assert.deepEqual(outliers.farthest([...values, NaN]), wanted, `seed ${seed}`);
  }
  // Nearly equal values have no outliers.
  assert.deepEqual(outliers.farthest([...Array(20).fill(7), 7.01]), []);
  assert.deepEqual(outliers.farthest([...Array(20).fill(0), 1]), [20]);
  assert.deepEqual(outliers.farthest([1, 1, 1, 9]), []); // too few values
});

test('findings in words', () => {
  assert.equal(findings.memberText({ host: 'n2', rank: '3', job: 'j' }), 'rank 3 on n2');
  assert.equal(findings.memberText({ host: 'n2', gpu: '1', uuid: 'GPU-1' }), 'gpu 1 on n2');
  assert.equal(findings.memberText({ host: 'n2' }), 'n2');
  const status = { missing: ['n3', 'n4'] };
  const nodes = [{ host: 'n1', state: 'live' }, { host: 'n2', state: 'crashed', last_ns: Date.UTC(2026, 0, 1, 11) * 1e6 }];
  const seen = { status, nodes, lastOf: new Map([['n3', Date.UTC(2026, 0, 1, 12)]]), live: true, dropped: 20000 };
  assert.deepEqual(findings.seen(seen, { from: 1, to: 2 }).map((f) => f.text), [
    'n3 is missing: nothing of it since 13:00:00',
    'n4 is missing',
    'the recording of n2 ends at 12:00:00 without its agent having closed it',
    '20 k points were dropped, because a program emitted faster than its buffers were read',
  ]);
  const silent = { metric: 'loss', tags: { host: 'n2', rank: '3' }, state: 'silent', rounds: 9, values: 150, others: 240, since_ns: 11e6, until_ns: 20e6 };
  const [said] = findings.all({ status: {}, nodes: [], dropped: 0 }, { from: 1, to: 20 }, [silent], () => ({ job: '', shift: 0, clock: (t) => `${t} ms` }));
  assert.equal(said.text, 'rank 3 on n2 has given no value of loss since 11 ms: it has 150 values, the others at least 240');
  assert.deepEqual([said.from, said.to, said.now, said.host], [11, 20, true, 'n2']);
});

test('axes are round and hold the values', () => {
  const next = random(seed);
  for (let i = 0; i < 2000 * rounds; i++) {
    const a = (next() - 0.3) * 10 ** (next() * 12 - 4);
    const b = a + next() * 10 ** (next() * 12 - 6);
    const binary = next() < 0.3;
    const s = scale.valueScale(a, b, 3, binary);
    const slack = (s.high - s.low) * 1e-9;
    assert.ok(s.low <= a + slack && s.high >= b - slack, `seed ${seed}: ${a} ${b} in ${s.low} ${s.high}`);
    assert.ok(s.ticks.length >= 2 && s.ticks.length <= 7, `seed ${seed}: ${s.ticks.length} ticks for ${a} ${b}`);
  }
  assert.deepEqual(scale.valueScale(5, 5, 3).ticks.length > 1, true);
  assert.deepEqual(scale.valueScale(Infinity, -Infinity, 3), { low: 0, high: 1, ticks: [0, 1] });
  assert.equal(scale.valueScale(3, 10, 3).low, 0);
});

test('time ticks fall on local hours', () => {
  const from = Date.UTC(2026, 10, 22, 0, 10);
  const { step, ticks } = scale.timeTicks(from, from + 86400e3, 5);
  assert.equal(step, 21600e3);
  for (const t of ticks) assert.equal(new Date(t).getHours() % 6, 0);
});

test('the address says the whole view', () => {
  const view = { range: { from: 1000.5, to: 2000.25 }, last: 0, filter: { host: 'n1', rank: '3' }, search: 'a b', runs: ['a b', 'c&d'], heat: 'loss', heatSort: 'mean', heatHidden: true, heatGroups: ['n0‥', 'b'] };
  assert.deepEqual(model.fromHash(model.toHash(view)), view);
  assert.equal(model.toHash(model.EMPTY), '');
  assert.deepEqual(model.fromHash('#last=60'), { ...model.EMPTY, last: 60 });
  // An invalid address shows everything.
  for (const odd of ['#from=5&to=1', '#from=x&to=2', '#last=-1', '#sort=%00', '#filter==,a,=b,c=', '#from=1'])
    assert.deepEqual(model.fromHash(odd), model.EMPTY, odd);
  assert.deepEqual(model.parseFilter(' host = a , rank=3,x'), { host: 'a', rank: '3' });
});

test('zooming and panning stay within the run', () => {
  const whole = { from: 0, to: 1000 };
  assert.deepEqual(model.zoomed({ from: 0, to: 100 }, 0.5, 0.5, whole), { from: 25, to: 75 });
  assert.deepEqual(model.zoomed({ from: 0, to: 100 }, 4, 0.5, whole), { from: 0, to: 400 });
  assert.deepEqual(model.zoomed({ from: 0, to: 900 }, 2, 0.5, whole), whole);
  assert.deepEqual(model.panned({ from: 900, to: 1000 }, 0.25, whole), { from: 900, to: 1000 });
  const tiny = model.zoomed({ from: 500, to: 500.02 }, 0.5, 0.5, whole);
  assert.ok(tiny.to - tiny.from >= 0.0199);
});

test('questions have a bucket for two pixels, and whole buckets', () => {
  for (const width of [1, 500, 60e3, 900e3, 3600e3, 86400e3, 30 * 86400e3])
    for (const pixels of [100, 330, 1200]) {
      const i = plan.interval(width, pixels);
      assert.ok(width / i <= Math.max(20, pixels / 2), `${width} ms in ${pixels} pixels`);
      assert.equal(86400e3 % i, 0);
      assert.equal(plan.aligned({ from: 12345678.9, to: 2e7 }, i).from % i, 0);
    }
  assert.equal(plan.intervalText(200), '200ms');
  assert.equal(plan.intervalText(90000), '90s');
  assert.equal(plan.intervalText(7200e3), '2h');
  const gauge = { name: 'loss', kind: 'gauge' };
  const texts = (...of) => plan.plan(...of).questions.map(plan.expression);
  assert.deepEqual(texts(gauge, 'lines', 1000, { host: 'a', odd: 'x)y' })[1], 'none:1s-min:loss{}{host=literal_or(a)}');
  assert.deepEqual(texts({ name: 'n_total', kind: 'counter' }, 'band', 60e3, {}), ['p50', 'min', 'max'].map((a) => `${a}:1m-last:rate{dropcounter}:n_total`));
  assert.deepEqual(
    plan.plan(gauge, 'band', 60e3, {}, true).questions.map(plan.expression),
    ['p50:1m-avg', 'min:1m-min', 'max:1m-max', 'p25:1m-avg', 'p75:1m-avg'].map((a) => `${a}:loss`),
  );
  assert.deepEqual(plan.expression(plan.nodesQuestion(gauge, 5000, {})), 'avg:5s-avg:loss{host=*}');
  assert.deepEqual(plan.expression(plan.nodesQuestion({ name: 'n_total', kind: 'counter' }, 5000, { host: 'a' })), 'sum:5s-last:rate{dropcounter}:n_total{host=*}{host=literal_or(a)}');
  assert.deepEqual(texts({ name: 'n_total', kind: 'counter' }, 'lines', 60e3, {}), ['none:1m-last:rate{dropcounter}:n_total']);
  assert.equal(plan.commandLine("none:1s-avg:it's", { from: 1.5, to: 2.5 }, 'j'), `sonde query 'none:1s-avg:it'\\''s' --start 1ms --end 3ms j`);
});

// Implements the rules of the query engine again, for comparison: puts all points into buckets,
// then computes means and rates.
function oracle(points, intervalMs, counter) {
  const buckets = new Map();
  for (const [t, v] of points) {
    const b = Math.floor(t / intervalMs) * intervalMs;
    buckets.set(b, [...(buckets.get(b) ?? []), v]);
  }
  const all = [...buckets].sort(([a], [b]) => a - b);
  if (!counter) return all.map(([t, v]) => [t, v.reduce((a, b) => a + b) / v.length, Math.min(...v), Math.max(...v)]);
  return all.slice(1).flatMap(([t, v], i) => {
    const [before, w] = all[i];
    const rate = ((v[v.length - 1] - w[w.length - 1]) / (t - before)) * 1000;
    return rate >= 0 ? [[t, rate, rate, rate]] : [];
  });
}

test('the stream’s buckets are the server’s', () => {
  for (let round = 0; round < 60 * rounds; round++) {
    const next = random(seed + round);
    const counter = next() < 0.5;
    const intervalMs = [1, 10, 200, 1000][Math.floor(next() * 4)];
    const points = [];
    let t = 1e12 + Math.floor(next() * 1e6);
    let v = 0;
    for (let i = 0; i < 200; i++) {
      t += next() * intervalMs * (next() < 0.05 ? 9 : 0.8);
      v = counter ? (next() < 0.03 ? 0 : v + next()) : next() - 0.5;
      points.push([t, v]);
    }
    // The page has buckets up to some time. The stream begins one bucket before the last of them.
    const settled = oracle(points, intervalMs, counter);
    const known = settled.slice(0, Math.floor(next() * settled.length));
    const line = { key: '', tags: {}, t: [], mean: [], low: [], high: [] };
    for (const [at, mean, low, high] of known) lines.putBucket(line, at, mean, low, high);
    const since = known.length ? known[known.length - 1][0] - intervalMs : -Infinity;
    const tail = new lines.Tail(intervalMs, counter);
    for (const [at, value] of points) if (at >= since) tail.push(line, at, value);
    // The last bucket of a counter is not complete. If the previous bucket has no value, a known
    // rate stays.
    const last = Math.floor(points[points.length - 1][0] / intervalMs) * intervalMs;
    const wanted = counter ? settled.filter(([at]) => at !== last) : settled;
    const got = line.t.map((at, i) => [at, line.mean[i], line.low[i], line.high[i]]).filter(([at]) => !counter || at !== last);
    assert.equal(got.length, wanted.length, `seed ${seed + round}`);
    got.forEach((row, i) => row.forEach((x, k) => assert.ok(Math.abs(x - wanted[i][k]) <= 1e-9 * Math.max(1, Math.abs(x)), `seed ${seed + round}: bucket ${i}: ${row} is not ${wanted[i]}`)));
  }
});

test('buckets are put, replaced and forgotten in order', () => {
  const line = { key: '', tags: {}, t: [], mean: [], low: [], high: [] };
  for (const t of [10, 30, 20, 30]) lines.putBucket(line, t, t, t, t);
  assert.deepEqual(line.t, [10, 20, 30]);
  lines.replaceTail(line, { ...line, t: [20, 40], mean: [1, 2], low: [1, 2], high: [1, 2] }, 15);
  assert.deepEqual([line.t, line.mean], [[10, 20, 40], [10, 1, 2]]);
  assert.equal(lines.forget(line, 20), 1);
  assert.deepEqual(line.t, [20, 40]);
  assert.equal(lines.indexAt(line, 39, 100), 0);
  assert.equal(lines.indexAt(line, 19, 100), -1);
  assert.equal(lines.indexAt(line, 500, 100), -1); // there is no value in a gap
  assert.deepEqual(lines.labels([{ tags: { host: 'a', gpu: '0', uuid: 'x' } }, { tags: { host: 'a', gpu: '1', uuid: 'y' } }]), ['gpu 0', 'gpu 1']);
});

test('columns are read, and a cut answer is refused', () => {
  const bytes = [];
  const u64 = (n) => {
    const b = Buffer.alloc(8);
    b.writeBigUInt64LE(BigInt.asUintN(64, BigInt(n)));
    bytes.push(...b);
  };
  const text = (t) => [t.length, ...Buffer.from(t)];
  bytes.push(...Buffer.from('sonde c2'));
  const about = [2, ...text('loss'), 1, ...text('s'), 1, ...text('rank'), ...text('3'), 1, ...text('host'), 5, 0];
  u64(about.length);
  bytes.push(...about, ...new Array((8 - (about.length % 8)) % 8).fill(0));
  u64(1);
  u64(1795384123770413446n);
  const v = Buffer.alloc(8);
  v.writeDoubleLE(0.25);
  bytes.push(...v);
  u64(0);
  const answer = new Uint8Array(bytes).buffer;
  const [c] = columns.readColumns(answer);
  assert.deepEqual([c.query, c.metric, c.kind, c.unit, c.tags, c.sourceSeries], [2, 'loss', 'gauge', 's', { rank: '3' }, 5]);
  assert.deepEqual([c.t[0], c.v[0]], [1795384123770.413446, 0.25]);
  for (let size = 0; size < bytes.length - 8; size++) assert.throws(() => columns.readColumns(answer.slice(0, size)), String(size));
});

test('an instant in JSON falls into its own bucket', () => {
  const next = random(seed);
  for (let i = 0; i < 10000 * rounds; i++) {
    const interval = [1, 10, 50, 200, 500, 1000][Math.floor(next() * 6)];
    const ms = Math.floor((1.7e12 + next() * 2e11) / interval) * interval;
    const t = columns.millisecondsOfNumber(JSON.parse(`${ms}000000`));
    assert.equal(Math.floor(t / interval) * interval, ms, `seed ${seed}`);
  }
});

test('events are read however they are cut', () => {
  const text = 'event: series\ndata: {"id":0}\n\n: nothing new\n\nevent: points\ndata: {"a":\ndata: 1}\n\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const reader = new events.EventReader();
    assert.deepEqual(
      [...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut))],
      [{ event: 'series', data: '{"id":0}' }, { event: 'points', data: '{"a":\n1}' }],
    );
  }
});

test('the clock of the server counts', () => {
  const clock = new server.ServerClock();
  assert.equal(clock.now(5000), 5000);
  clock.note(new Date(3600e3).toUTCString(), 1000);
  assert.ok(Math.abs(clock.now(1000) - 3600e3) <= 500);
  // A difference below a second is due to the header's rounding.
  const near = new server.ServerClock();
  near.note(new Date(4000).toUTCString(), 4700);
  assert.equal(near.now(5000), 5000);
});

test('the server knows its own node, and those in front of a relay or behind it, but not missing ones', () => {
  const node = (host, connected) => ({ host, connected });
  const status = { job: 'j', first_ns: 1, last_ns: 2, missing: ['n4'], files: [{ path: 'a', host: 'n1' }, { path: 'b' }], hub: { nodes: [node('n2', true), node('n3', false), node('n4', false)] } };
  assert.deepEqual(job.connectedNodes(status).map((n) => [n.host, n.job, n.first_ns]), [['n1', 'j', 1], ['n2', 'j', 1], ['n3', 'j', 1]]);
  assert.deepEqual(job.connectedNodes({ job: 'j', files: [{ path: 'a', host: 'n1' }] }).map((n) => n.host), ['n1']);
});

test('groups put the user’s metrics first', () => {
  const metric = (name, source) => ({ name, kind: 'gauge', unit: '', help: '', level: 1, source });
  const all = catalogue.groups([metric('memory_free_bytes', 'memory'), metric('load_5m', 'load'), metric('cpu_percent', 'cpu'), metric('loss'), metric('x', 'new source'), metric('pressure_io_some_percent', 'pressure')]);
  assert.deepEqual(all.map((g) => [g.id, g.metrics.map((m) => m.name), g.shown]), [
    ['custom', ['loss'], 1],
    ['cpu', ['cpu_percent', 'load_5m'], 1],
    ['memory', ['memory_free_bytes'], 1],
    ['disk', ['pressure_io_some_percent'], 1],
    ['other', ['x'], 1],
  ]);
  assert.ok(catalogue.matches({ ...metric('loss'), help: 'Of training.' }, 'Your metrics', 'TRAIN los'));
  assert.ok(!catalogue.matches(metric('loss'), 'Your metrics', 'gpu'));
});

test('spans are nested in lanes and summed up', () => {
  const span = (name, from, to, tags, id = 0) => ({ name, start_ns: from * 1e6, end_ns: to === null ? undefined : to * 1e6, id, parent: 0, node: 'a', tags });
  const all = spans.lanes(
    [span('step', 10, 20, { rank: '10' }), span('epoch', 0, 100, { rank: '2' }), span('step', 0, 40, { rank: '2' }), span('step', 40, 100, { rank: '2' }), span('open', 90, null, { rank: '2' })],
    200,
  );
  assert.deepEqual(all.map((l) => [l.name, l.depth]), [['a rank 2', 3], ['a rank 10', 1]]);
  assert.deepEqual(all[0].spans.map((p) => [p.span.name, p.depth]), [['epoch', 0], ['step', 1], ['step', 1], ['open', 2]]);
  const table = spans.summaries(all, { from: 0, to: 100 });
  const step = table.find((s) => s.name === 'step');
  assert.deepEqual([step.count, step.open, step.max], [3, 0, 0.06]);
  assert.ok(Math.abs(step.share - 0.55) < 1e-9 && Math.abs(step.imbalance - 0.1 / 0.055) < 1e-9);
  assert.deepEqual([table.find((s) => s.name === 'open').open, table.find((s) => s.name === 'open').mean], [1, NaN]);
});

test('nodes are sorted, outliers do not take the colours', () => {
  const line = (host, values) => ({ key: host, tags: { host }, t: values.map((_, i) => i), mean: values, low: values, high: values });
  const all = heat.rows([line('n10', [1, 1]), line('n2', [5, 5]), line('n1', [2, NaN]), line('n3', [NaN, NaN])]);
  const order = (by) => heat.sorted(all, by).map((r) => r.host);
  assert.deepEqual(order('name'), ['n1', 'n2', 'n3', 'n10']);
  assert.deepEqual(order('mean'), ['n2', 'n1', 'n10', 'n3']);
  assert.deepEqual(order('deviation'), ['n2', 'n10', 'n1', 'n3']);
  const values = Array.from({ length: 1000 }, (_, i) => i % 10);
  values[7] = 1e9;
  assert.deepEqual(heat.colourRange(heat.rows([line('a', values)])), [0, 9]);
});

test('groups of nodes: each node in one, a row is the mean of its nodes', () => {
  const next = random(seed);
  for (let round = 0; round < 50 * rounds; round++) {
    const count = 2 + Math.floor(next() * 1200);
    const hosts = Array.from({ length: count }, (_, i) => (next() < 0.02 ? `login-${'abc'[i % 3]}${i}x` : `r${i % 4}n${String(i).padStart(5, '0')}`));
    const groups = nodeGroups.groupsOf(hosts);
    assert.deepEqual([...groups.values()].flat().sort(), hosts.slice().sort(), `seed ${seed}`);
    assert.ok(groups.size <= 40, `seed ${seed}: ${groups.size} groups of ${count} nodes`);
  }
  assert.deepEqual([...nodeGroups.groupsOf(['n1', 'n2', 'gpu-node', 'n10']).entries()], [['n‥', ['n1', 'n2']], ['gpu-node', ['gpu-node']], ['n1‥', ['n10']]]);
  assert.equal(nodeGroups.groupable(['n1', 'n2', 'n3']), false); // all nodes would be in one group
  assert.equal(nodeGroups.groupable(['n01', 'n02', 'n11', 'n12']), true);
  const line = (host, t, values) => ({ key: host, tags: { host }, t, mean: values, low: values, high: values });
  const all = heat.rows([line('n01', [0, 1, 2], [1, 2, NaN]), line('n02', [1, 2], [4, NaN]), line('n11', [0, 1], [9, 9]), line('n12', [0], [7])]);
  const closed = nodeGroups.groupedRows(all, 'mean', []);
  assert.deepEqual(closed.map((r) => [r.host, r.t, r.v]), [['n1‥', [0, 1], [8, 9]], ['n0‥', [0, 1], [1, 3]]]);
  assert.deepEqual(nodeGroups.groupedRows(all, 'name', ['n1‥']).map((r) => r.host), ['n0‥', 'n1‥', 'n11', 'n12']);
});

test('embed.py: without packages there is no page, and the next build looks again', () => {
  const made = path.join(out, 'a b.c');
  const run = (packages) => spawnSync('python3', [`${web}/embed.py`, made, `${made}.d`, packages], { encoding: 'utf8' });
  assert.equal(run('/nonexistent').status, 0);
  assert.match(readFileSync(made, 'utf8'), /page_file_count = 0;/);
  assert.match(readFileSync(`${made}.d`, 'utf8'), /a\\ b\.c: .*main\.ts .*\/nonexistent\/package-lock\.json/);
  if (!built) return;
  assert.equal(run(process.env.PAGE_PACKAGES).status, 0);
  const text = readFileSync(made, 'utf8');
  assert.match(text, /page_file_count = 3;/);
  const before = statSync(made).mtimeMs;
  // A second run does not write the same file again, so that it is not compiled again.
  assert.equal(run(process.env.PAGE_PACKAGES).status, 0);
  assert.equal(statSync(made).mtimeMs, before);
  assert.equal(readFileSync(made, 'utf8'), text);
});

test('embed.py: an archive without node builds the page that was put into it, unless a source has changed', { skip: !built }, () => {
  const copy = path.join(out, 'archive', 'web');
  cpSync(web, copy, { recursive: true });
  const embed = (args, env = process.env) => spawnSync('python3', [`${copy}/embed.py`, ...args], { encoding: 'utf8', env });
  const made = (name, packages) => {
    const done = embed([path.join(out, name), path.join(out, `${name}.d`), packages]);
    assert.equal(done.status, 0, done.stderr);
    return readFileSync(path.join(out, name), 'utf8');
  };
  const archive = { ...process.env, MESON_DIST_ROOT: path.join(out, 'archive') };
  const refused = embed(['--dist', '/nonexistent'], archive);
  assert.notEqual(refused.status, 0);
  assert.match(refused.stderr, /needs the page/);
  const done = embed(['--dist', process.env.PAGE_PACKAGES], archive);
  assert.equal(done.status, 0, done.stderr);
  assert.equal(made('prebuilt.c', '/nonexistent'), made('built.c', process.env.PAGE_PACKAGES));
  appendFileSync(path.join(copy, 'src/main.ts'), '\n');
  assert.match(made('changed.c', '/nonexistent'), /page_file_count = 0;/);
});

test('the types are right', { skip: !existsSync(path.join(process.env.WEB_TEST_PACKAGES, 'node_modules/typescript')) }, () => {
  const tsc = path.join(process.env.WEB_TEST_PACKAGES, 'node_modules/typescript/bin/tsc');
  const done = spawnSync('node', [tsc, '-p', web], { encoding: 'utf8' });
  assert.equal(done.status, 0, done.stdout);
});

test('a node that answers again closes a gap: at most once in 15 s', () => {
  const g = new gaps.Gaps();
  let now = 1000;
  g.note(null);
  assert.equal(g.take(now), false);
  g.note('n2 (late), n3.site (not connected), n9 (error: too many series, as n1 (late) has)');
  g.note('n2 (late), n3.site (not connected), n9 (late)');
  assert.equal(g.take(now), false);
  g.note('n3.site (not connected), n9 (late), and 4 more'); // one of them may be n2
  assert.equal(g.take(now), false);
  g.note('n3.site (not connected)');
  assert.equal(g.take(now), true);
  assert.equal(g.take(now), false);
  // n2 is late again and again.
  for (let i = 0; i < 7; i++) {
    g.note('n2 (late), n3.site (not connected)');
    g.note('n3.site (not connected)');
    assert.equal(g.take((now += 2000)), false);
  }
  assert.equal(g.take((now += 1000)), true);
  g.note(null); // n3.site is there
  assert.equal(g.take((now += 15000)), true);
  g.note(null);
  assert.equal(g.take((now += 15000)), false);
});

test('a request without an answer ends: at once if the server has stalled, else after its limit', async () => {
  const never = () => new Promise(() => undefined);
  let questions = 0;
  const healthy = async () => void questions++;
  const sick = () => Promise.reject(new Error('no answer'));
  await assert.rejects(new server.Watchdog(sick, 1).watch(3600e3, never), TypeError);
  const watchdog = new server.Watchdog(healthy, 5);
  const ended = [];
  const work = (signal) => new Promise(() => signal.addEventListener('abort', () => ended.push('aborted')));
  // On a machine that stands still for the 40 ms, it asks nothing.
  for (let times = 1; !questions; times++) {
    await assert.rejects(watchdog.watch(40, work), TypeError);
    assert.equal(ended.length, times);
  }
  // An answer or an error in time is passed on.
  assert.equal(await watchdog.watch(40, async () => 7), 7);
  await assert.rejects(watchdog.watch(40, () => Promise.reject(new RangeError('x'))), RangeError);
});

test('questions asked at the same time are one request', async () => {
  const both = path.join(out, 'both.ts');
  writeFileSync(both, `export * from '${web}/src/batch'; export { Refused } from '${web}/src/source';`);
  const { Batch, QUESTIONS_MAX, Refused } = await load('batch', both);
  let sent = [];
  const answer = async (questions, fromMs, toMs) => {
    sent.push([questions.map((q) => q.metric).join(''), fromMs, toMs]);
    if (questions.some((q) => q.metric === 'x')) throw new Refused('no metric x');
    if (questions.some((q) => q.metric === 'l')) throw new TypeError('lost');
    return questions.flatMap((q, query) => [...q.metric].map((_, i) => ({ query, tags: { of: q.metric, i } })));
  };
  const batch = new Batch(answer);
  const ask = (metrics, from, to, intervalMs = 10) => batch.query(metrics.map((metric) => ({ metric, intervalMs })), from, to);
  const said = async (...asked) => {
    sent = [];
    const all = await Promise.allSettled(asked);
    return all.map((one) => (one.status === 'rejected' ? one.reason.message : one.value.map((c) => `${c.query}${c.tags.of}${c.tags.i}`).join(' ')));
  };
  // The same end, and begins within the widest bucket.
  assert.deepEqual(await said(ask(['a', 'bb'], 100, 900), ask(['c'], 90, 900, 30), ask(['d'], 110, 900)), ['0a0 1bb0 1bb1', '0c0', '0d0']);
  assert.deepEqual(sent, [['abbcd', 90, 900]]);
  assert.deepEqual(await said(ask(['a'], 100, 900), ask(['b'], 90, 900), ask(['c'], 100, 901)), ['0a0', '0b0', '0c0']);
  assert.deepEqual(sent, [['a', 100, 900], ['b', 90, 900], ['c', 100, 901]]);
  // Asked later.
  const first = ask(['a'], 100, 900);
  await first;
  assert.deepEqual(await said(ask(['b'], 100, 900)), ['0b0']);
  // A refused question fails alone; a lost connection fails all.
  assert.deepEqual(await said(ask(['a'], 1, 9), ask(['x'], 1, 9), ask(['b'], 1, 9)), ['0a0', 'no metric x', '0b0']);
  assert.deepEqual(sent.map(([metrics]) => metrics), ['axb', 'a', 'x', 'b']);
  assert.deepEqual(await said(ask(['a'], 1, 9), ask(['l'], 1, 9)), ['lost', 'lost']);
  // Many are several requests.
  const many = Array.from({ length: QUESTIONS_MAX }, () => 'm');
  assert.equal((await said(ask(many, 1, 9), ask(['a'], 1, 9), ask(['b'], 1, 9))).length, 3);
  assert.deepEqual(sent.map(([metrics]) => metrics.length), [QUESTIONS_MAX, 2]);
});
