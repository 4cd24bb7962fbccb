// Tests the actions of the page that change a job, in Chromium: annotations, and restarts without a
// node. They need a token, and the key of the page's session.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { loaded, T, twoNodes, violations } from './checks.mjs';
import { ask, atEnd, browser, drawn, endAll, folder, HANGS, need, proxy, said, serve, start, tab, TOKEN, until } from './harness.mjs';

need('page', 'packages', 'chromium');
let b;
before(async () => {
  b = await browser();
});
after(endAll);

const derived = (role) => createHmac('sha256', TOKEN).update(`sonde ${role} token`).digest('hex');
const dialog = (page, name) => page.locator(`dialog[aria-label="${name}"]`);

// Sends an annotation with these headers; returns the status.
function annotate(url, headers) {
  const body = JSON.stringify({ startTime: Date.now(), description: 'from elsewhere' });
  return new Promise((resolve, reject) => {
    const request = http.request(new URL('api/annotation', url), { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    request.on('error', reject);
    request.end(body);
  });
}

// Starts a job that emits until it is stopped. Returns its address and two of its tokens.
async function runningJob() {
  const home = folder();
  const env = { ...process.env, DEMO_SECONDS: '600', SONDE_RUN_DIR: home, SONDE_RUNS: home };
  const job = start(process.env.SONDE, ['run', '-l', '1', '-v', '--no-record', '--', process.env.SONDE_DEMO], { env });
  const [, url] = await said(job.child, /: (http:\/\/[^ ]+) /);
  const token = async (...role) => (await promisify(execFile)(process.env.SONDE, ['token', ...role], { env })).stdout.trim();
  return { job, url, view: await token(), write: await token('--write') };
}

// Starts a server of another origin, for pages of an attacker.
async function attacker() {
  const server = http.createServer((request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>x</title>'));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  atEnd(() => server.close());
  return `http://127.0.0.1:${server.address().port}/`;
}

test('an annotation: asks for text and token, appears in the page and in the API; no other page can send one', HANGS, async () => {
  const { job, url, view, write } = await runningJob();
  const page = await tab(b);
  await page.goto(`${url}?token=${view}`);
  await until(page, loaded);
  const open = dialog(page, 'annotate');
  await page.getByRole('button', { name: 'annotate' }).click();
  assert.deepEqual(await violations(page), []);
  // This job is not resilient.
  assert.ok(!(await page.getByRole('button', { name: 'restart without a node' }).isVisible()));

  // Neither a wrong token nor one that may only view is accepted. The dialog says so.
  await open.getByLabel('text').fill('rate halved, by hand');
  await open.getByLabel('tags').fill('rank=3');
  for (const wrong of ['x'.repeat(64), view]) {
    await open.getByLabel('This browser may only view').fill(wrong);
    await open.getByRole('button', { name: 'annotate' }).click();
    await until(page, () => /may only view/.test(document.querySelector('dialog[open] .alarm').textContent));
    await open.getByLabel('text').press('End'); // the dialog stays open
    await page.evaluate(() => (document.querySelector('dialog[open] .alarm').textContent = ''));
  }
  assert.equal((await drawn(page)).annotations.length, 0);

  const answered = page.waitForResponse((r) => r.url().endsWith('/sonde/v1/session') && r.request().method() === 'POST');
  await open.getByLabel('This browser may only view').fill(write);
  const asked = Date.parse(await open.getByLabel('time').inputValue());
  await page.keyboard.press('Enter');
  const { key } = await (await answered).json();
  await until(page, () => !document.querySelector('dialog[open]'));
  await until(page, () => window.sonde.drawn().annotations.length === 1);
  const [note] = (await drawn(page)).annotations;
  assert.deepEqual([note.text, note.tags.rank, Math.round(note.t_ns / 1e6)], ['rate halved, by hand', '3', asked]);
  const inApi = async () => (await ask(url, 'sonde/v1/annotations', view)).annotations.map((a) => a.text);
  assert.deepEqual(await inApi(), ['rate halved, by hand']);

  // The page now has the key of its session; a second annotation needs no token. With the keyboard:
  // at the cross-hair.
  const chart = page.locator('figure[data-metric=loss] canvas');
  await chart.hover({ position: { x: 40, y: 60 } });
  const at = await page.evaluate(() => window.sonde.hover);
  await page.keyboard.press('a');
  await page.keyboard.type('seen here');
  assert.ok(!(await open.getByLabel('This browser may only view').isVisible()));
  await page.keyboard.press('Enter');
  await until(page, () => window.sonde.drawn().annotations.length === 2);
  assert.equal(Math.round((await drawn(page)).annotations.find((a) => a.text === 'seen here').t_ns / 1e6), Math.round(at));

  // The cookie alone, the cookie with a wrong key, and another page with both, change nothing.
  const [{ name, value }] = await page.context().cookies();
  const own = { Cookie: `${name}=${value}`, Origin: new URL(url).origin };
  assert.equal(await annotate(url, own), 403);
  assert.equal(await annotate(url, { ...own, 'X-Sonde-Session-Key': '0'.repeat(64) }), 403);
  const both = { ...own, 'X-Sonde-Session-Key': key };
  const others = [{ Origin: 'null' }, { Origin: 'http://n1' }, { 'Sec-Fetch-Site': 'cross-site' }];
  for (const from of others)
    assert.equal(await annotate(url, { ...both, ...from }), 403);
  const foreign = await page.context().newPage();
  await foreign.goto(await attacker());
  // A form needs no consent of the server. The attacker chooses its text, so that it is JSON.
  const refused = foreign.waitForResponse((r) => r.url().startsWith(url));
  await foreign.evaluate((to) => {
    const form = document.createElement('form');
    Object.assign(form, { method: 'post', enctype: 'text/plain', action: to });
    const field = document.createElement('input');
    Object.assign(field, { name: '{"startTime":1,"description":"from elsewhere","notes":"', value: '"}' });
    form.append(field);
    document.body.append(form);
    form.submit();
  }, String(new URL('api/annotation', url)));
  const answer = await refused;
  assert.ok((await answer.request().allHeaders()).cookie?.includes(value), 'the browser sends the cookie to another port');
  assert.equal(answer.status(), 403);
  assert.deepEqual((await inApi()).sort(), ['rate halved, by hand', 'seen here']);
  // A program needs no key.
  assert.equal(await annotate(url, { Authorization: `Bearer ${write}` }), 200);

  // A reloaded page has no key.
  await page.reload();
  await until(page, loaded);
  await page.getByRole('button', { name: 'annotate' }).click();
  assert.ok(await open.getByLabel('This browser may only view').isVisible());
  assert.deepEqual(page.said.filter((s) => !/403 \(Forbidden\)/.test(s)), []);
  job.child.kill('SIGINT');
  await job.gone;
});

test('behind a portal with HTTPS, a Host of its own and its own Authorization: the page shows and changes the job', HANGS, async () => {
  const { job, url, view, write } = await runningJob();
  const portal = await proxy(new URL(url).port, '/rnode/n1/4242/', true);
  const page = await tab(b, { ignoreHTTPSErrors: true });
  await page.goto(`${portal.url}?token=${view}`);
  await until(page, loaded);
  assert.equal(page.url().split('#')[0], portal.url);
  await until(page, (t) => window.sonde.drawn().charts.some((c) => c.lines.some((l) => l.t.at(-1) > t)), await page.evaluate(() => window.sonde.drawn().range.to));
  const open = dialog(page, 'annotate');
  await page.getByRole('button', { name: 'annotate' }).click();
  await open.getByLabel('text').fill('from the portal');
  await open.getByLabel('This browser may only view').fill(write);
  await page.keyboard.press('Enter');
  await until(page, () => window.sonde.drawn().annotations.length === 1);
  assert.deepEqual((await ask(url, 'sonde/v1/annotations', view)).annotations.map((a) => a.text), ['from the portal']);
  assert.deepEqual(page.said, []);
  job.child.kill('SIGINT');
  await job.gone;
});

test('a restart without a node: asks which, needs the control token, and reaches the launcher', HANGS, async () => {
  const made = folder();
  for (const host of ['n1', 'n2', 'n3']) {
    // These files stay live, because their writers run until the end of the test.
    const { child, lines } = start(process.env.SONDE_MAKE_STORE, [path.join(made, `${host}.sonde`), 'job9', host]);
    for (let s = 0; s < 20; s++) child.stdin.write(`point loss host=${host} ${Date.now() - s * 1000}000000 ${s}\n`);
    child.stdin.write('sync\n');
    await new Promise((done) => lines.once('line', done));
  }
  const server = await serve([made], ['agent=/nowhere/agent.sock', 'restarts=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${derived('view')}#filter=host%3Dn3`);
  await until(page, loaded);
  const open = dialog(page, 'restart without a node');
  await page.getByRole('button', { name: 'restart without a node' }).click();
  assert.deepEqual(await violations(page), []);
  // The first node cannot be left out. The node of the filter is selected.
  assert.deepEqual(await open.locator('option').allInnerTexts(), ['n2', 'n3']);
  assert.equal(await open.getByLabel('node').inputValue(), 'n3');
  await open.getByRole('button', { name: 'cancel' }).click();
  await page.getByRole('button', { name: 'restart without a node' }).click();
  await open.getByLabel('node').selectOption('n2');
  const requested = [];
  server.lines.on('line', (line) => requested.push(line));
  await open.getByLabel('This browser may only view').fill(derived('write'));
  await page.keyboard.press('Enter');
  await until(page, () => /less than this action needs/.test(document.querySelector('dialog[open] .alarm').textContent));
  assert.deepEqual(requested, []);
  const line = new Promise((done) => server.lines.once('line', done));
  await open.getByLabel('This browser may only view').fill(TOKEN);
  await page.keyboard.press('Enter');
  assert.equal(await line, 'reboot n2');
  await until(page, () => !document.querySelector('dialog[open]') && document.querySelector('.note').textContent === 'restart without a node: done');
  assert.deepEqual(page.said, []);
  await page.context().close();
  await server.stop();
});

test('a recording offers no action', HANGS, async () => {
  const server = await serve([await twoNodes()], ['replay=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}`);
  await until(page, loaded);
  for (const name of ['annotate', 'restart without a node']) assert.ok(!(await page.getByRole('button', { name }).isVisible()), name);
  await page.keyboard.press('a');
  assert.equal(await page.locator('dialog[open]').count(), 0);
  // The server refuses annotations of recordings, whatever the token.
  const { error } = await ask(server.url, 'api/annotation', TOKEN, { startTime: T, description: 'late' });
  assert.match(error.message, /these are recordings/);
  await server.stop();
});
