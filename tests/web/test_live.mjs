// Tests the page in Chromium: comparisons of running jobs with each other and with a recording, a
// server that does not answer, and the pixels of the drawn lines.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { near, ok, T, violations } from './checks.mjs';
import { ask, browser, drawn, endAll, folder, HANGS, need, proxy, record, said, serve, start, tab, TOKEN, until } from './harness.mjs';

need('page', 'packages', 'chromium');
let b;
before(async () => {
  b = await browser();
});
after(endAll);

// Starts the demo as a job, which emits metrics and spans, and waits until it has emitted.
async function running(home, name) {
  const env = { ...process.env, DEMO_SECONDS: '600', SONDE_JOB: name, SONDE_RUN_DIR: home, SONDE_RUNS: path.join(home, 'runs') };
  const job = start(process.env.SONDE, ['run', '-l', '2', '-v', '--', process.env.SONDE_DEMO], { env });
  await said(job.child, /: (http:\/\/[^ ]+) /);
  return { env, stop: () => (job.child.kill('SIGINT'), job.gone) };
}

// Starts `sonde open` with these runs; returns its address and token.
async function opened(env, ...names) {
  const { child, lines } = start(process.env.SONDE, ['open', '--no-browser', ...names], { env });
  child.stderr.resume();
  const address = new URL(await new Promise((resolve) => lines.once('line', resolve)));
  return { url: `${address.origin}/`, token: address.searchParams.get('token') };
}

// Checks that the compared lines have the server's numbers, at the times since the start of each
// run. Returns the number of compared buckets.
async function sidesAreTheServers(page, { url, token }, metric) {
  const now = await drawn(page);
  const chart = now.charts.find((c) => c.metric === metric);
  let compared = 0;
  for (const [i, side] of now.sides.entries()) {
    const line = chart.lines[i];
    const body = { start: Math.floor(line.t[0] + side.shift), end: Math.ceil(line.t.at(-1) + side.shift + chart.intervalMs), queries: [{ m: `${chart.expressions[0]}{}{job=literal_or(${side.job})}` }] };
    const { series } = await ask(url, 'sonde/v1/query', token, body);
    const wanted = new Map(series[0].t_ns.map((t, k) => [Math.round(t / 1e6 - side.shift), series[0].values[k]]));
    line.t.forEach((t, k) => {
      if (t + chart.intervalMs * 2 > line.t.at(-1)) return; // the newest buckets may still change
      assert.ok(near(wanted.get(Math.round(t)), line.mean[k]), `${metric} of ${side.job} at ${t}: ${line.mean[k]}, the server says ${wanted.get(Math.round(t))}`);
      compared++;
    });
  }
  return compared;
}

test('two running jobs, and a recording beside a running job: each from its start, and they go on', HANGS, async () => {
  const home = folder();
  const one = await running(home, 'one');
  await promisify(execFile)(process.env.SONDE, ['run', '-l', '2', '--', process.env.SONDE_DEMO], { env: { ...one.env, SONDE_JOB: 'old', DEMO_SECONDS: '6' } });
  const two = await running(home, 'two');
  const server = await opened(one.env, 'one', 'two', 'old');
  const page = await tab(b);
  const newest = (n) => window.sonde.drawn().charts.find((c) => c.metric === 'loss')?.lines[n]?.t.at(-1);
  for (const [runs, live] of [[['one', 'two'], [true, true]], [['old', 'two'], [false, true]]]) {
    await page.goto(`${server.url}?token=${server.token}`);
    await until(page, () => window.sonde?.drawn().charts.length > 0);
    await page.getByLabel('first run').selectOption(runs[0]);
    await page.getByLabel('second run').selectOption(runs[1]);
    if (!(await drawn(page)).sides) await page.getByRole('button', { name: 'compare from their start' }).click();
    await until(page, (names) => window.sonde.drawn().sides?.map((s) => s.job).join() === names.join(), runs);
    await until(page, () => window.sonde.drawn().charts.find((c) => c.metric === 'loss')?.lines.length === 2);
    await until(page, () => window.sonde.drawn().overview.length === 2);
    const { sides, charts } = await drawn(page);
    assert.deepEqual(sides.map((s) => s.live), live);
    const { runs: known } = await ask(server.url, 'sonde/v1/status', server.token);
    const began = runs.map((job) => known.find((r) => r.job === job).start_ns / 1e6);
    assert.ok(Math.abs(sides[1].shift - (began[1] - began[0])) < 1, JSON.stringify([sides, began]));
    assert.deepEqual(charts.find((c) => c.metric === 'loss').lines.map((l) => l.tags.job), runs);
    // The lines of running jobs grow, and that of the recording does not.
    const before = [await page.evaluate(newest, 0), await page.evaluate(newest, 1)];
    for (const [n, goesOn] of live.entries()) if (goesOn) await page.waitForFunction(([from, at]) => window.sonde.drawn().charts.find((c) => c.metric === 'loss').lines[at].t.at(-1) > from + 2000, [before[n], n], { polling: 100 });
    if (!live[0]) {
      // When the range grows, its buckets may become larger, and a larger bucket begins earlier.
      const { t, bucket } = await page.evaluate(() => { const c = window.sonde.drawn().charts.find((one) => one.metric === 'loss'); return { t: c.lines[0].t.at(-1), bucket: c.intervalMs }; });
      assert.ok(t <= before[0] && t > before[0] - bucket, `${t}, was ${before[0]}, buckets of ${bucket} ms`);
    }
    assert.ok((await sidesAreTheServers(page, server, 'loss')) > 4);
    assert.deepEqual(await violations(page), []);
  }
  assert.ok((await drawn(page)).lanes.length > 0); // the page shows the demo's spans
  assert.deepEqual(page.said, []);
  await one.stop();
  await two.stop();
});

test('a server that accepts requests and does not answer: the page says since when, and goes on', HANGS, async () => {
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '2', '--metrics', '6', '--history', '60', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const between = await proxy(new URL(url).port, '/');
  const page = await tab(b);
  await page.goto(`${between.url}?token=${token}`);
  await until(page, () => window.sonde?.drawn().charts.some((c) => c.lines.length));
  between.stall();
  await until(page, () => document.documentElement.dataset.connection === 'lost');
  assert.match(await page.locator('.banner').innerText(), /has not answered since .* next try/);
  assert.deepEqual(await violations(page), []);
  const last = Math.max(...(await drawn(page)).charts.flatMap((c) => c.lines.flatMap((l) => l.t)));
  between.goOn();
  await until(page, ok);
  await until(page, (t) => window.sonde.drawn().charts.some((c) => c.lines.some((l) => l.t.at(-1) > t + 2000)), last);
  assert.ok(!(await page.locator('.banner').isVisible()));
  assert.deepEqual(page.said.filter((s) => !/Failed to load resource/.test(s)), []);
});

test('a server that stalls in the midst of the requests: the page says so before it sends others', HANGS, async () => {
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '2', '--metrics', '6', '--history', '60', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const between = await proxy(new URL(url).port, '/');
  const page = await tab(b);
  between.stallWith('/sonde/v1/annotations?');
  await page.goto(`${between.url}?token=${token}`);
  await until(page, () => document.documentElement.dataset.connection === 'lost');
  const paths = between.waiting();
  assert.ok(paths.some((p) => p.includes('/annotations?')), paths.join());
  assert.deepEqual(paths.filter((p) => /query|session|status/.test(p)), []);
  between.goOn();
  await until(page, ok);
});

test('a proxy that answers with its login page, and a server with an unknown answer: the page goes on', HANGS, async () => {
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '2', '--metrics', '6', '--history', '60', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const between = await proxy(new URL(url).port, '/');
  const page = await tab(b);
  await page.goto(`${between.url}?token=${token}`);
  await until(page, () => window.sonde?.drawn().charts.some((c) => c.lines.length));
  const newest = async () => Math.max(...(await drawn(page)).charts.flatMap((c) => c.lines.flatMap((l) => l.t)));
  const goesOn = async (last) => until(page, (t) => window.sonde.drawn().charts.some((c) => c.lines.some((l) => l.t.at(-1) > t + 2000)), last);
  between.logOut(true);
  await until(page, () => document.documentElement.dataset.connection === 'lost');
  const last = await newest();
  between.logOut(false);
  await until(page, ok);
  await goesOn(last);
  assert.deepEqual(page.said, []);
  // Such a status makes the page fail. It says so on the console, and goes on.
  let wrong = 2;
  await page.route('**/sonde/v1/status', (route) => (wrong-- > 0 ? route.fulfill({ json: {} }) : route.continue()));
  const before = await newest();
  await page.waitForEvent('pageerror');
  await goesOn(before);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.connection), 'ok');
});

test('the pixels of a line lie where the API’s numbers put them', HANGS, async () => {
  const made = folder();
  await record(path.join(made, 'n1.sonde'), 'job1', 'n1', (w) => {
    for (let s = 0; s < 300; s++) if (s < 120 || s >= 180) w.point('level', {}, T + s * 1000, s < 240 ? 50 + 40 * Math.sin(s / 40) : 10);
  });
  const server = await serve([made], ['replay=1']);
  for (const colorScheme of ['light', 'dark']) {
    const page = await tab(b, { colorScheme });
    await page.emulateMedia({ reducedMotion: 'reduce', colorScheme });
    await page.goto(`${server.url}?token=${TOKEN}`);
    await until(page, () => window.sonde?.drawn().charts.some((c) => c.lines.length));
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const canvas = page.locator('figure[data-metric=level] canvas');
    // In each column of pixels, finds the first and the last one with the colour of the line.
    const columns = await canvas.evaluate((c) => {
      const colour = getComputedStyle(document.documentElement).getPropertyValue('--series-0').trim();
      const wanted = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
      const { data, width, height } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
      const found = [];
      for (let x = 0; x < width; x++) {
        const ys = [];
        for (let y = 0; y < height; y++) if (wanted.every((v, k) => Math.abs(v - data[4 * (y * width + x) + k]) < 40)) ys.push(y);
        if (ys.length) found.push([x / devicePixelRatio, ys[0] / devicePixelRatio, ys.at(-1) / devicePixelRatio]);
      }
      return found;
    });
    const { plot, low, high } = await page.evaluate(() => {
      const chart = window.sonde.charts.find('level');
      return { plot: chart.plotWidth(), low: chart.low, high: chart.high };
    });
    const { range, charts } = await drawn(page);
    const [chart] = charts;
    const body = { start: Math.floor(chart.asked.from), end: Math.ceil(chart.asked.to), queries: [{ m: chart.expressions[0] }] };
    const [answer] = (await ask(server.url, 'sonde/v1/query', TOKEN, body)).series;
    const x = (t) => ((t - range.from) / (range.to - range.from)) * plot;
    const TOP = 14; // the top of the plot, as in chart.ts
    const BOTTOM = 132 - 16;
    const y = (v) => TOP + (1 - (v - low) / (high - low)) * (BOTTOM - TOP);
    let compared = 0;
    answer.t_ns.forEach((ns, i) => {
      const [, top, bottom] = columns.find(([at]) => Math.abs(at - x(ns / 1e6)) <= 0.5) ?? [];
      if (x(ns / 1e6) > plot - 2 || top === undefined) return;
      const place = y(answer.values[i]);
      assert.ok(place >= top - 2 && place <= bottom + 3, `${colorScheme}: at ${x(ns / 1e6)} the line is from ${top} to ${bottom}, not at ${place}`);
      assert.ok(bottom - top < 40, 'the whole column has the colour');
      compared++;
    });
    assert.ok(compared > answer.t_ns.length * 0.8, `${compared} of ${answer.t_ns.length}`);
    // Nothing is drawn in the gap.
    const gap = [x(T + 125e3), x(T + 178e3)];
    assert.deepEqual(columns.filter(([at]) => at > gap[0] && at < gap[1]), []);
    assert.deepEqual(page.said, []);
    await page.context().close();
  }
  await server.stop();
});
