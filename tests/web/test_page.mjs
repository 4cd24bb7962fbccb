// The page in Chromium: what it draws is compared with the API's numbers.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { compare, fits, loaded, ok, T, twoNodes, violations } from './checks.mjs';
import { ask, browser, drawn, endAll, folder, need, proxy, record, said, serve, start, tab, TOKEN, until } from './harness.mjs';

need('page', 'packages', 'chromium');
let b;
before(async () => {
  b = await browser();
});
after(endAll);

test('a recording: numbers, zoom, cross-hair, search, filter, spans, address', { timeout: 60000 }, async () => {
  const server = await serve([await twoNodes()], ['replay=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}`);
  assert.equal(page.url(), server.url); // the token has left the address
  await until(page, loaded);
  const cookies = await page.context().cookies();
  assert.deepEqual(cookies.map((c) => [c.httpOnly, c.sameSite, c.path]), [[true, 'Strict', '/']]);
  const first = await compare(page, server.url, TOKEN);
  assert.ok(first.charts >= 3 && first.compared > 300, JSON.stringify(first));
  let now = await drawn(page);
  assert.deepEqual(now.charts.map((c) => c.metric).slice(0, 2).sort(), ['loss', 'steps_total']); // ours before the node's
  assert.deepEqual(now.heat.rows.map((r) => r.host), ['n1', 'n2']);
  assert.equal(now.lanes.length, 2);
  assert.deepEqual(now.annotations.map((a) => a.text), ['rate halved']);
  // The gap of n2 is one.
  const gap = now.charts.find((c) => c.metric === 'cpu_percent').lines.find((l) => l.tags.host === 'n2').t;
  assert.ok(!gap.some((t) => t >= T + 50000 && t < T + 70000));
  // The peak is kept, however wide a bucket is.
  assert.equal(Math.max(...now.charts.find((c) => c.metric === 'loss').lines.flatMap((l) => l.high)), 9);
  assert.equal(await page.locator('.spans tbody tr').count(), 2);
  assert.match(await page.locator('.spans tbody tr', { hasText: 'epoch' }).innerText(), /epoch\s+12\s+18 s\s+18 s\s+18 s/);
  assert.match(await page.locator('header').innerText(), /job7[^]*2 nodes/);
  assert.deepEqual(await violations(page), []);

  // A drag over one chart zooms all of them, and stands in the address.
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

  // Keys: everything, search, filter.
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
  assert.deepEqual(await violations(page), []); // the other theme
  await page.keyboard.press('?');
  assert.ok(await page.locator('dialog[aria-label=keys]').isVisible());
  await page.keyboard.press('Escape');
  await page.getByLabel('filter by tags').fill('host=n2');
  await page.keyboard.press('Enter');
  await until(page, () => window.sonde.drawn().charts.every((c) => c.lines.every((l) => l.tags.host === 'n2')) && window.sonde.drawn().heat.rows.length === 1);
  await compare(page, server.url, TOKEN);

  // A click on a span: every chart says what was within.
  const lane = await page.locator('.lanes canvas').boundingBox();
  await page.locator('.lanes canvas').scrollIntoViewIfNeeded();
  const at = await page.locator('.lanes canvas').boundingBox();
  await page.mouse.click(at.x + lane.width * 0.6, at.y + 20);
  await until(page, () => /peak .* mean/.test(document.querySelector('figure[data-metric=cpu_percent] .now').textContent));
  assert.deepEqual(page.said, []);

  // On a phone nothing sticks out.
  await page.setViewportSize({ width: 360, height: 700 });
  assert.ok(await fits(page));
  await page.setViewportSize({ width: 1280, height: 800 });

  // The cookie is gone: the page says so, and goes on showing what it has.
  await page.context().clearCookies();
  await page.keyboard.press('0');
  await until(page, () => document.documentElement.dataset.connection === 'unauthorized');
  assert.match(await page.locator('.banner').innerText(), /session has ended/);
  await server.stop();
});

test('a running job: the stream’s buckets are the server’s; a gap is filled; the end is told', { timeout: 60000 }, async () => {
  const home = folder();
  const job = start(process.env.SONDE, ['run', '-l', '2', '-v', '--record', path.join(home, 'recording'), '--', process.env.SONDE_DEMO], {
    env: { ...process.env, DEMO_SECONDS: '600', SONDE_RUN_DIR: home, SONDE_RUNS: home },
  });
  const [, url] = await said(job.child, /: (http:\/\/[^ ]+) /);
  const token = await new Promise((resolve) => {
    const { lines } = start(process.env.SONDE, ['token'], { env: { ...process.env, SONDE_RUN_DIR: home } });
    lines.once('line', resolve);
  });
  // Below another path, as a notebook server shows it.
  const below = await proxy(new URL(url).port, '/user/me/proxy/4242/');
  const page = await tab(b);
  await page.goto(`${below.url}?token=${token}`);
  assert.equal(page.url(), below.url);
  assert.deepEqual((await page.context().cookies()).map((c) => c.path), ['/user/me/proxy/4242']);
  // It moves by itself.
  await until(page, () => window.sonde?.drawn().charts.find((c) => c.metric === 'loss')?.lines[0]?.t.length > 4);
  const before = await drawn(page);
  assert.equal(before.live, true);
  const newest = (d) => d.charts.find((c) => c.metric === 'loss').lines[0].t.at(-1);
  await until(page, (t) => window.sonde.drawn().charts.find((c) => c.metric === 'loss').lines[0].t.at(-1) > t + 1500, newest(before));
  assert.match(await page.locator('.state').innerText(), /running/);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.said, []);

  // The server is gone, and back.
  const lostAt = newest(await drawn(page));
  await below.close();
  await until(page, () => document.documentElement.dataset.connection === 'lost');
  assert.match(await page.locator('.banner').innerText(), /has not answered since .* next try/);
  await new Promise((resolve) => setTimeout(resolve, 1200)); // what is missed
  await below.open();
  await until(page, ok);
  await until(page, (t) => window.sonde.drawn().charts.find((c) => c.metric === 'loss').lines[0].t.at(-1) > t + 3000, lostAt);
  // Paused: nothing moves, and what is drawn is what the server says; also of the time without connection.
  await page.keyboard.press(' ');
  await until(page, () => location.hash.includes('from='));
  const { range } = await drawn(page);
  const result = await compare(page, url, token, range.to);
  assert.ok(result.compared > 20, JSON.stringify(result));
  await page.keyboard.press(' ');
  await until(page, () => location.hash === '');

  // The job ends, and its server with it.
  job.child.kill('SIGINT');
  await job.gone;
  await until(page, () => document.documentElement.dataset.connection === 'lost');
  assert.match(await page.locator('.banner').innerText(), /sonde open/);
  // Refused connections are the only thing that the console knows.
  assert.deepEqual(page.said.filter((s) => !/Failed to load resource/.test(s)), []);
});

test('many nodes: bands, the heat map, a node by click', { timeout: 60000 }, async () => {
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
  const canvas = page.locator('.heat canvas').last();
  await canvas.click({ position: { x: 50, y: 2 } });
  await until(page, () => location.hash.includes('filter=host'));
  await until(page, () => window.sonde.drawn().charts.every((c) => c.mode === 'lines' && c.lines.every((l) => l.tags.host === window.sonde.drawn().heat.rows[0].host)));
  assert.deepEqual(await violations(page), []);
  assert.ok(await fits(page));
  assert.deepEqual(page.said, []);
});

test('no data, then the first point; and no token', { timeout: 60000 }, async () => {
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

// Browsers send no SameSite=Strict cookie along a redirect from another page; sonde open starts them with a file.
test('a link in another page opens the page, too', { timeout: 60000 }, async () => {
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

test('what is served: no inline code, compressed, kept by the browser', { timeout: 60000 }, async () => {
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
