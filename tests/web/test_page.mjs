// Tests the page in Chromium: compares the drawn numbers with those of the API.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { compare, fits, loaded, near, ok, T, twoNodes, violations } from './checks.mjs';
import { ask, browser, drawn, endAll, folder, HANGS, need, proxy, rarePort, record, said, serve, start, tab, TOKEN, until } from './harness.mjs';

need('page', 'packages', 'chromium');
let b;
before(async () => {
  b = await browser();
});
after(endAll);

test('a recording: numbers, zoom, cross-hair, search, filter, spans, address', HANGS, async () => {
  const server = await serve([await twoNodes()], ['replay=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}`);
  assert.equal(page.url(), server.url); // the page has removed the token from the address
  await until(page, loaded);
  const cookies = await page.context().cookies();
  assert.deepEqual(cookies.map((c) => [c.httpOnly, c.sameSite, c.path]), [[true, 'Strict', '/']]);
  const first = await compare(page, server.url, TOKEN);
  assert.ok(first.charts >= 3 && first.compared > 300, JSON.stringify(first));
  let now = await drawn(page);
  // The program's metrics come before the node's.
  assert.deepEqual(now.charts.map((c) => c.metric).slice(0, 2).sort(), ['loss', 'steps_total']);
  assert.deepEqual(now.heat.rows.map((r) => r.host), ['n1', 'n2']);
  assert.equal(now.lanes.length, 2);
  assert.deepEqual(now.annotations.map((a) => a.text), ['rate halved']);
  // n2 has a gap.
  const gap = now.charts.find((c) => c.metric === 'cpu_percent').lines.find((l) => l.tags.host === 'n2').t;
  assert.ok(!gap.some((t) => t >= T + 50000 && t < T + 70000));
  // The drawing contains the peak, whatever the width of a bucket.
  assert.equal(Math.max(...now.charts.find((c) => c.metric === 'loss').lines.flatMap((l) => l.high)), 9);
  assert.equal(await page.locator('.spans tbody tr').count(), 2);
  assert.match(await page.locator('.spans tbody tr', { hasText: 'epoch' }).innerText(), /epoch\s+12\s+18 s\s+18 s\s+18 s/);
  assert.match(await page.locator('header').innerText(), /job7[^]*2 nodes/);
  assert.deepEqual(await violations(page), []);

  // A drag over a chart zooms all charts, and changes the address.
  const canvas = page.locator('figure[data-metric=loss] canvas');
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 60, box.y + 60);
  await until(page, () => document.querySelector('.query').textContent.startsWith("sonde query 'none:"));
  await page.mouse.down();
  await page.mouse.move(box.x + 120, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await until(page, () => location.hash.includes('from='));
  now = await drawn(page);
  assert.ok(now.range.to - now.range.from < 60000);
  await until(page, () => window.sonde.drawn().charts.every((c) => c.intervalMs < 500));
  await compare(page, server.url, TOKEN);
  const shared = page.url();
  const second = await page.context().newPage();
  await second.goto(shared);
  await until(second, loaded);
  assert.deepEqual((await drawn(second)).range, now.range);
  await second.close();

  // Keys show the whole range, start a search, and set a filter.
  await page.keyboard.press('0');
  await until(page, () => location.hash === '');
  await page.keyboard.press('/');
  await page.keyboard.type('busy cpu');
  await until(page, () => [...document.querySelectorAll('figure:not([hidden])')].map((f) => f.dataset.metric).join() === 'cpu_percent');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await until(page, () => document.querySelectorAll('figure:not([hidden])').length === 3);
  await page.keyboard.press('j');
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'FIGURE');
  await page.keyboard.press('+');
  await until(page, () => location.hash.includes('from='));
  await page.keyboard.press('0');
  await page.keyboard.press('n');
  await until(page, () => document.querySelector('.note').textContent.includes('rate halved'));
  const dark = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--dark').trim());
  await page.keyboard.press('t');
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--dark').trim()), dark);
  assert.deepEqual(await violations(page), []); // in the other theme
  await page.keyboard.press('?');
  assert.ok(await page.locator('dialog[aria-label=keys]').isVisible());
  await page.keyboard.press('Escape');
  await page.getByLabel('filter by tags').fill('host=n2');
  await page.keyboard.press('Enter');
  await until(page, () => window.sonde.drawn().charts.every((c) => c.lines.every((l) => l.tags.host === 'n2')) && window.sonde.drawn().heat.rows.length === 1);
  await compare(page, server.url, TOKEN);

  // After a click on a span, every chart shows its statistics within the span.
  const lane = await page.locator('.lanes canvas').boundingBox();
  await page.locator('.lanes canvas').scrollIntoViewIfNeeded();
  const at = await page.locator('.lanes canvas').boundingBox();
  await page.mouse.click(at.x + lane.width * 0.6, at.y + 20);
  await until(page, () => /peak .* mean/.test(document.querySelector('figure[data-metric=cpu_percent] .now').textContent));
  assert.deepEqual(page.said, []);

  // Groups with few charts share a row; on a phone, each has its own.
  const tops = () => page.evaluate(() => ['custom', 'cpu'].map((id) => document.getElementById(`group-${id}`).getBoundingClientRect().top));
  const [own, cpu] = await tops();
  assert.equal(own, cpu);
  // On the small screen of a phone, nothing is wider than the screen.
  await page.setViewportSize({ width: 360, height: 700 });
  assert.ok(await fits(page));
  const [above, below] = await tops();
  assert.ok(below > above + 200, `${above} ${below}`);
  await page.setViewportSize({ width: 1280, height: 800 });

  // Without the cookie, the page says that the session has ended, and still shows its data.
  await page.context().clearCookies();
  await page.keyboard.press('0');
  await until(page, () => document.documentElement.dataset.connection === 'unauthorized');
  assert.match(await page.locator('.banner').innerText(), /session has ended/);
  await server.stop();
});

test('a running job: the stream’s buckets are the server’s; a gap is filled; the end is told', HANGS, async () => {
  const home = folder();
  const port = String(await rarePort());
  const job = start(process.env.SONDE, ['run', '-l', '2', '-v', '-p', port, '--record', path.join(home, 'recording'), '--', process.env.SONDE_DEMO], {
    env: { ...process.env, DEMO_SECONDS: '600', SONDE_RUN_DIR: home, SONDE_RUNS: home },
  });
  const [, url] = await said(job.child, /: (http:\/\/[^ ]+) /);
  const token = await new Promise((resolve) => {
    const { lines } = start(process.env.SONDE, ['token'], { env: { ...process.env, SONDE_RUN_DIR: home } });
    lines.once('line', resolve);
  });
  // The page is below another path, as in a notebook server.
  const below = await proxy(new URL(url).port, '/user/me/proxy/4242/');
  const page = await tab(b);
  await page.goto(`${below.url}?token=${token}`);
  assert.equal(page.url(), below.url);
  assert.deepEqual((await page.context().cookies()).map((c) => c.path), ['/user/me/proxy/4242']);
  // The charts advance by themselves.
  await until(page, () => window.sonde?.drawn().charts.find((c) => c.metric === 'loss')?.lines[0]?.t.length > 4);
  const before = await drawn(page);
  assert.equal(before.live, true);
  const newest = (d) => d.charts.find((c) => c.metric === 'loss').lines[0].t.at(-1);
  await until(page, (t) => window.sonde.drawn().charts.find((c) => c.metric === 'loss').lines[0].t.at(-1) > t + 1500, newest(before));
  assert.match(await page.locator('.state').innerText(), /running/);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.said, []);

  // The server becomes unreachable, and is reachable again.
  const lostAt = newest(await drawn(page));
  await below.close();
  await until(page, () => document.documentElement.dataset.connection === 'lost');
  assert.match(await page.locator('.banner').innerText(), /has not answered since .* next try/);
  // The page must fetch the data of this time without a connection later.
  await new Promise((resolve) => setTimeout(resolve, 1200));
  await below.open();
  await until(page, ok);
  await until(page, (t) => window.sonde.drawn().charts.find((c) => c.metric === 'loss').lines[0].t.at(-1) > t + 3000, lostAt);
  // The page is paused, so nothing moves. The drawing equals the server's data, also for the time
  // without a connection.
  await page.keyboard.press(' ');
  await until(page, () => location.hash.includes('from='));
  const { range } = await drawn(page);
  const result = await compare(page, url, token, range.to);
  assert.ok(result.compared > 20, JSON.stringify(result));
  await page.keyboard.press(' ');
  await until(page, () => location.hash === '');

  // The job ends, and so does its server.
  job.child.kill('SIGINT');
  await job.gone;
  await until(page, () => document.documentElement.dataset.connection === 'lost');
  assert.match(await page.locator('.banner').innerText(), /sonde open/);
  // The only console messages are those about refused connections.
  assert.deepEqual(page.said.filter((s) => !/Failed to load resource/.test(s)), []);
});

test('many nodes: bands, the heat map, a node by click', HANGS, async () => {
  const NODES = 120;
  const sim = start(process.env.SONDE, ['simulate', '--nodes', String(NODES), '--metrics', '12', '--history', '120', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const page = await tab(b, { colorScheme: 'dark' });
  await page.goto(`${url}?token=${token}`);
  await until(page, (n) => window.sonde?.drawn().heat.rows.length === n && window.sonde.drawn().charts.some((c) => c.mode === 'band' && c.lines.length), NODES);
  await page.keyboard.press(' ');
  await until(page, () => location.hash.includes('from='));
  await until(page, () => window.sonde.drawn().charts.every((c) => c.asked && c.asked.to !== Infinity));
  const now = await drawn(page);
  const result = await compare(page, url, token, now.range.to - 4000);
  assert.ok(result.compared > 100, JSON.stringify(result));
  const body = { start: Math.floor(now.range.from), end: Math.ceil(now.range.to), queries: [{ m: `avg:0all-max:${now.heat.metric}{host=*}` }] };
  const { series } = await ask(url, 'sonde/v1/query', token, body);
  assert.deepEqual(series.map((s) => s.tags.host).sort(), now.heat.rows.map((r) => r.host).sort());
  // Every 53rd node takes longer for its steps. The chart names these nodes and draws their lines
  // with the API's numbers, once it is on the screen.
  await page.locator('figure[data-metric=step_seconds]').scrollIntoViewIfNeeded();
  await until(page, () => window.sonde.drawn().charts.find((c) => c.metric === 'step_seconds').outliers.length === 2);
  const band = (await drawn(page)).charts.find((c) => c.metric === 'step_seconds');
  const means = await ask(url, 'sonde/v1/query', token, { ...body, queries: [{ m: 'none:0all-avg:step_seconds' }] });
  const slowest = means.series.sort((x, y) => y.values[0] - x.values[0]).slice(0, 2).map((s) => s.tags.host);
  assert.deepEqual(band.outliers.map((l) => l.tags.host).sort(), slowest.sort());
  for (const line of band.outliers) {
    const own = await ask(url, 'sonde/v1/query', token, { ...body, queries: [{ m: `none:${band.intervalMs}ms-avg:step_seconds{host=${line.tags.host}}` }] });
    const values = new Map(own.series[0].t_ns.map((t, i) => [t / 1e6, own.series[0].values[i]]));
    assert.ok(line.t.length > 20);
    // The newest buckets are left out, because nodes may send their points late.
    line.t.forEach((t, i) => i && t < now.range.to - 4000 && assert.equal(line.mean[i], values.get(t), `${line.tags.host} at ${t}`));
  }
  const label = await page.locator('figure[data-metric=step_seconds] canvas').getAttribute('aria-label');
  for (const host of slowest) assert.ok(label.includes(host), label);
  // With groups of nodes, each group has a row with the mean of its nodes. A click opens a group.
  const canvas = page.locator('.heat canvas').last();
  await page.getByRole('button', { name: 'groups' }).click();
  await until(page, (n) => window.sonde.drawn().heat.rows.length === n / 10, NODES);
  const grouped = (await drawn(page)).heat.rows;
  const nodes = new Map(now.heat.rows.map((r) => [r.host, r.mean]));
  for (const row of grouped) {
    const mean = row.members.reduce((sum, m) => sum + nodes.get(m.host), 0) / row.members.length;
    assert.ok(row.members.length === 10 && Math.abs(row.mean - mean) < 0.02 * Math.abs(mean), JSON.stringify([row.host, row.mean, mean]));
  }
  await canvas.click({ position: { x: 50, y: 2 } });
  await until(page, (n) => window.sonde.drawn().heat.rows.length === n / 10 + 10, NODES);
  assert.match(decodeURIComponent(new URL(page.url()).hash), /groups=n0000‥/);
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'groups' }).click();
  await until(page, (n) => window.sonde.drawn().heat.rows.length === n, NODES);
  await page.getByRole('button', { name: 'Nodes' }).click();
  await canvas.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Nodes' }).click();
  await canvas.click({ position: { x: 50, y: 2 } });
  await until(page, () => location.hash.includes('filter=host'));
  await until(page, () => window.sonde.drawn().charts.every((c) => c.mode === 'lines' && c.lines.every((l) => l.tags.host === window.sonde.drawn().heat.rows[0].host)));
  assert.deepEqual(await violations(page), []);
  assert.ok(await fits(page));
  assert.deepEqual(page.said, []);
});

test('the first charts wait neither for all nodes nor for their metrics', HANGS, async () => {
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '6', '--metrics', '6', '--history', '60', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const page = await tab(b);
  const held = [];
  const holding = (route) => new Promise((go) => held.push(go)).then(() => route.continue());
  await page.route('**/sonde/v1/nodes', holding);
  await page.route('**/sonde/v1/metrics', holding);
  let only; // a metric of other nodes alone
  await page.route('**/sonde/v1/metrics?own', async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    only = answer.metrics.pop().name;
    await route.fulfill({ response, json: answer });
  });
  // No two calls of the clock are in the same millisecond.
  await page.addInitScript(() => {
    const { now } = Date;
    let last = 0;
    Date.now = () => (last = Math.max(last + 1, now()));
  });
  const first = page.waitForRequest((r) => r.method() === 'POST' && r.url().includes('/query'));
  await page.goto(`${url}?token=${token}`);
  // The overview and the heat map are one request.
  const asked = JSON.parse((await first).postData()).queries.map((q) => q.m);
  assert.deepEqual(asked.map((m) => m.includes('{host=*}')), [false, false, false, true], asked.join(' '));
  await until(page, () => window.sonde?.drawn().heat.rows.length === 6 && window.sonde.drawn().charts.every((c) => c.lines.length === 6 || !c.onScreen));
  // Only the list of nodes was requested, once.
  while (!held.length) await page.waitForTimeout(20);
  assert.equal(held.length, 1);
  held[0]();
  const listed = () => page.evaluate((name) => document.querySelector(`#metrics option[value="${name}"]`) !== null, only);
  assert.equal(await listed(), false);
  while (!(await listed())) {
    for (const go of held) go();
    await page.waitForTimeout(20);
  }
  assert.deepEqual(page.said, []);
});

test('the state of the job is requested beside the script, and once', HANGS, async () => {
  const server = await serve([await twoNodes()]);
  const page = await tab(b);
  let goOn;
  const scriptMayCome = new Promise((go) => (goOn = go));
  await page.route('**/page.js*', (route) => scriptMayCome.then(() => route.continue()));
  const asked = [];
  page.on('request', (r) => asked.push(r.url().split('/sonde/v1/')[1]));
  const early = Promise.all(['status', 'metrics?own'].map((path) => page.waitForRequest((r) => r.url().endsWith(`/sonde/v1/${path}`))));
  const opened = page.goto(`${server.url}?token=${TOKEN}`);
  await early;
  goOn();
  await opened;
  await until(page, loaded);
  assert.equal(asked.filter((path) => path === 'metrics?own').length, 1);
  assert.deepEqual(page.said, []);
  await server.stop();
});

test('a long running job opens at its end, without a request for the rest', HANGS, async () => {
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '2', '--metrics', '4', '--history', '2400', '--rate', '1', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const page = await tab(b);
  const ranges = [];
  page.on('request', (r) => {
    const body = r.method() === 'POST' && r.url().includes('/query') ? JSON.parse(r.postData()) : null;
    if (body && body.queries.length > 3) ranges.push(body.end - body.start);
  });
  await page.goto(`${url}?token=${token}`);
  await until(page, () => window.sonde?.drawn().charts.some((c) => c.lines.length));
  assert.match(new URL(page.url()).hash, /last=900/);
  assert.ok(ranges.length && ranges.every((ms) => ms < 1000e3), JSON.stringify(ranges));
  assert.deepEqual(page.said, []);
});

test('a band of few nodes has quartiles, with the numbers of the API', HANGS, async () => {
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '12', '--metrics', '8', '--history', '60', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const page = await tab(b);
  await page.goto(`${url}?token=${token}`);
  const bands = () => window.sonde?.drawn().charts.filter((c) => c.mode === 'band' && c.lines.some((l) => l.lower && l.upper)) ?? [];
  // A gauge and a counter, after their newest buckets were appended.
  for (const metric of ['step_seconds', 'samples_total']) {
    await until(page, (name) => window.sonde?.drawn().charts.some((c) => c.metric === name && c.lines[0]?.upper), metric);
    const end = await page.evaluate((name) => window.sonde.drawn().charts.find((c) => c.metric === name).lines[0].t.at(-1), metric);
    await until(page, ([name, t]) => window.sonde.drawn().charts.find((c) => c.metric === name).lines[0].t.at(-1) > t, [metric, end]);
    const { range, charts } = await drawn(page);
    const { expressions, intervalMs, lines: [line] } = charts.find((c) => c.metric === metric);
    assert.deepEqual(expressions.map((e) => e.split(':')[0]), ['p50', 'min', 'max', 'p25', 'p75']);
    const { series } = await ask(url, 'sonde/v1/query', token, { start: Math.floor(line.t[0]), end: Math.ceil(range.to), queries: expressions.map((m) => ({ m })) });
    let compared = 0;
    for (const [query, name] of [[3, 'lower'], [4, 'upper']]) {
      const wanted = new Map(series.find((s) => s.query === query).t_ns.map((t, i) => [t / 1e6, series.find((s) => s.query === query).values[i]]));
      assert.equal(line[name].length, line.t.length);
      line.t.forEach((t, i) => {
        if (t + 4000 + 2 * intervalMs > range.to) return; // nodes may send the newest points late
        assert.ok(near(wanted.get(t), line[name][i]), `${metric} ${name} at ${t}: ${line[name][i]}, the server says ${wanted.get(t)}`);
        assert.ok(line.low[i] <= line.lower[i] && line.lower[i] <= line.upper[i] && line.upper[i] <= line.high[i]);
        compared++;
      });
    }
    assert.ok(compared > 20, `${compared}`);
  }
  assert.deepEqual(page.said, []);
});

test('1,000 nodes: each has its row and its numbers, and the charts are bands', HANGS, async () => {
  const NODES = 1000;
  const sim = start(process.env.SONDE, ['simulate', '--nodes', String(NODES), '--metrics', '5', '--history', '60', '--rate', '2', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const page = await tab(b);
  await page.goto(`${url}?token=${token}#last=0`);
  // A node that answers late gets its past with a later answer.
  const complete = (n) => {
    const { heat, charts } = window.sonde?.drawn() ?? { heat: { rows: [] } };
    const t = heat.rows[777]?.t;
    const settled = () => t.filter((at) => at < t.at(-1) - 8000);
    return heat.rows.length === n && charts.every((c) => !c.onScreen || c.lines.length) && settled().length > 12;
  };
  await until(page, complete, NODES);
  const { heat, charts } = await drawn(page);
  assert.ok(charts.filter((c) => c.onScreen).every((c) => c.mode === 'band'));
  assert.match(await page.locator('.heat').innerText(), /3 nodes a row, the highest shown/);
  // A node has the server's buckets. The newest ones are left out, because late points may change
  // them.
  const [row] = heat.rows.slice(777);
  const end = row.t.at(-1) - 8000;
  const body = { start: Math.floor(row.t[0]), end: Math.ceil(end), queries: [{ m: `avg:${row.t[1] - row.t[0]}ms-avg:${heat.metric}{host=${row.host}}` }] };
  const { series } = await ask(url, 'sonde/v1/query', token, body);
  const known = new Map(row.t.map((t, i) => [t, row.v[i]]));
  assert.ok(series[0].t_ns.length > 10);
  series[0].t_ns.forEach((t, i) => t / 1e6 < end && t / 1e6 > row.t[0] && assert.ok(Math.abs(known.get(t / 1e6) - series[0].values[i]) < 1e-9, `${row.host} at ${t}`));
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.said, []);
});

test('one metric of 2,500 series: a band at once, without a request for all lines', HANGS, async () => {
  const made = folder();
  await record(path.join(made, 'n1.sonde'), 'job1', 'n1', (w) => {
    for (let rank = 0; rank < 2500; rank++) for (let i = 0; i < 3; i++) w.point('loss', { rank }, T + i * 1000, rank + i);
  });
  const server = await serve([made], ['replay=1']);
  const page = await tab(b);
  const sizes = [];
  page.on('response', async (r) => r.url().includes('/query') && sizes.push((await r.body().catch(() => '')).length));
  await page.goto(`${server.url}?token=${TOKEN}`);
  await until(page, loaded);
  const [chart] = (await drawn(page)).charts;
  assert.deepEqual([chart.mode, chart.lines.length, chart.lines[0].low[0], chart.lines[0].high[0]], ['band', 1, 0, 2499]);
  assert.match(await page.locator('figure').first().innerText(), /2500 series/);
  assert.ok(sizes.length && Math.max(...sizes) < 20000, String(sizes));
  assert.deepEqual(page.said, []);
  await server.stop();
});

test('no data, then the first point; and no token', HANGS, async () => {
  const made = folder();
  const server = await serve([made]);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}`);
  await page.getByText('No point yet').waitFor();
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.said, []);
  await record(path.join(made, 'n1.sonde'), 'job1', 'n1', (w) => w.point('loss', { host: 'n1' }, T, 0.5));
  await until(page, loaded);
  assert.deepEqual((await drawn(page)).charts.map((c) => [c.metric, c.lines[0].mean]), [['loss', [0.5]]]);
  assert.ok(!(await page.getByText('No point yet').isVisible()));
  const other = await tab(b);
  for (const target of ['?token=wrong', '']) {
    const answer = await other.goto(server.url + target);
    assert.equal(answer.status(), 401);
    assert.match(await other.locator('main').innerText(), /needs its token/);
  }
  await server.stop();
});

// `sonde open` uses a file with a link, because browsers send no SameSite=Strict cookie with a
// redirect from another page.
test('a link in another page opens the page, too', HANGS, async () => {
  const made = folder();
  const server = await serve([folder()]);
  const link = path.join(made, 'open.html');
  writeFileSync(link, `<meta http-equiv="refresh" content="0;url=${server.url}?token=${TOKEN}">`);
  const page = await tab(b);
  await page.goto(`file://${link}`);
  await page.getByText('No point yet').waitFor();
  assert.equal(page.url(), server.url);
  assert.deepEqual(page.said, []);
  await server.stop();
});

test('what is served: no inline code, compressed, kept by the browser', HANGS, async () => {
  const server = await serve([folder()]);
  const get = (target, headers = {}) => fetch(server.url + target, { headers: { Authorization: `Bearer ${TOKEN}`, ...headers } });
  const page = await get('');
  const html = await page.text();
  assert.doesNotMatch(page.headers.get('content-security-policy'), /unsafe|\*/);
  assert.doesNotMatch(html, /<script>|<style|style=|onload/);
  assert.equal((await get('', { 'If-None-Match': page.headers.get('etag') })).status, 304);
  for (const part of html.match(/page\.(js|css)\?v=\w+/g)) {
    const answer = await get(part);
    assert.match(answer.headers.get('cache-control'), /immutable/);
    assert.equal(answer.headers.get('content-encoding'), 'gzip');
    assert.ok((await answer.text()).length > 1000);
  }
  assert.equal((await fetch(server.url + 'page.js')).status, 401);
  await server.stop();
});
