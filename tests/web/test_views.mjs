// Tests the page in Chromium: findings, the comparison of two runs, export, failing jobs, the
// keyboard.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { compare, fits, loaded, near, ok, T, violations } from './checks.mjs';
import { ask, browser, drawn, endAll, folder, HANGS, need, record, said, serve, start, tab, TOKEN, until, WAITS_MS } from './harness.mjs';

need('page', 'packages', 'chromium');
let b;
before(async () => {
  b = await browser();
});
after(endAll);

const run = (...args) => promisify(execFile)(process.env.SONDE, args).catch((e) => e);

// Records a job of two nodes with two ranks each. Rank 3 is slower by the factor `slow` from the
// 200th to the 400th second. The epochs of rank 2 take twice as long from the ninth on. If `slow`
// is 1, no rank is slow.
async function training(made, job, start, { slow = 1.6, seconds = 600, base = 0.4 } = {}) {
  for (const [n, host] of ['n1', 'n2'].entries())
    await record(path.join(made, `${job}-${host}.sonde`), job, host, (w) => {
      w.metric('step_seconds', 'gauge', 'seconds', 'Time of one step.');
      w.metric('samples_total', 'counter', '', 'Samples.');
      for (let s = 0; s < seconds; s++)
        for (const rank of [2 * n, 2 * n + 1]) {
          const factor = rank === 3 && s >= 200 && s < 400 ? slow : 1;
          w.point('step_seconds', { host, rank }, start + s * 1000, base * factor * (1 + 0.01 * Math.sin(s * 1.7 + rank)));
          w.point('samples_total', { host, rank }, start + s * 1000, s * 64);
        }
      for (const rank of [2 * n, 2 * n + 1])
        for (let e = 0; e < 20; e++) {
          const length = rank === 2 && e >= 8 && slow > 1 ? 26000 : 13000;
          w.span(1000 * (rank + 1) + e, 0, start + e * 30000, start + e * 30000 + length + 100 * Math.sin(e + rank), { rank }, 'epoch');
        }
    });
}

test('findings: what sonde detect finds, in a sentence each, marked at its place', HANGS, async () => {
  const made = folder();
  await training(made, 'job1', T);
  const server = await serve([made], ['replay=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}`);
  await until(page, () => window.sonde?.drawn().findings.length >= 2);
  await until(page, loaded);
  const { findings } = await drawn(page);
  const { findings: said, measures } = await ask(server.url, 'sonde/v1/findings', TOKEN);
  assert.deepEqual(measures.map((m) => [m.metric ?? m.span, m.members]), [['step_seconds', 4], ['epoch', 4]]);
  // The findings are those of `sonde detect`. The worst one that still lasts comes first.
  const slow = async (...args) => JSON.parse((await run('detect', '--json', ...args, made)).stdout).members.filter((m) => m.bad_rounds > 0).map((m) => m.member);
  assert.deepEqual(await slow('--by', 'host,rank', '--every', '2', 'step_seconds'), ['host=n2,rank=3']);
  assert.deepEqual(await slow('--by', 'rank', '--span', 'epoch'), ['rank=2']);
  assert.deepEqual(said.map((f) => [f.metric ?? f.span, f.tags, f.state]), [['epoch', { host: 'n2', rank: '2' }, 'slow'], ['step_seconds', { host: 'n2', rank: '3' }, 'was slow']]);
  assert.ok(said[0].factor > 1.9 && said[0].factor < 2.1 && said[1].factor > 1.5 && said[1].factor < 1.7, JSON.stringify(said));
  assert.ok(Math.abs(said[1].since_ns / 1e6 - T - 208000) < 8000 && Math.abs(said[1].until_ns / 1e6 - T - 401000) < 8000, JSON.stringify(said[1]));
  assert.deepEqual(findings.map((f) => [f.from, f.to]), said.map((f) => [f.since_ns / 1e6, f.until_ns / 1e6]));
  const strip = page.locator('.findings button');
  assert.match(await strip.nth(0).innerText(), /^rank 2 on n2 is 2(\.\d+)? times as slow as (the others|its own best) in the span epoch, since \d\d:\d\d:\d\d$/);
  assert.match(await strip.nth(1).innerText(), /^rank 3 on n2 was 1\.\d+ times as slow as the others in step_seconds, from \d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/);
  assert.deepEqual(await violations(page), []);

  // The chart of a finding has a mark at its times, and no pixel of that colour elsewhere.
  const chart = page.locator('figure[data-metric=step_seconds] canvas');
  const marked = await chart.evaluate((canvas) => {
    const alarm = getComputedStyle(document.documentElement).getPropertyValue('--alarm').trim();
    const wanted = [1, 3, 5].map((i) => parseInt(alarm.slice(i, i + 2), 16));
    const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const xs = [];
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (wanted.every((v, k) => Math.abs(v - data[4 * (y * width + x) + k]) < 3)) xs.push(x / devicePixelRatio);
    return [Math.min(...xs), Math.max(...xs)];
  });
  const { range } = await drawn(page);
  const plot = await page.evaluate(() => window.sonde.charts.find('step_seconds').plotWidth());
  findings.slice(1).forEach(({ from, to }) => {
    const x = (t) => ((t - range.from) / (range.to - range.from)) * plot;
    assert.ok(Math.abs(marked[0] - x(from)) <= 1.5 && Math.abs(marked[1] - x(to)) <= 2, JSON.stringify([marked, x(from), x(to)]));
  });

  // A click on a finding leads to its chart and time.
  await strip.nth(1).click();
  await until(page, () => document.activeElement?.dataset.metric === 'step_seconds');
  const zoomed = (await drawn(page)).range;
  assert.ok(zoomed.from < findings[1].from && zoomed.to > findings[1].to && zoomed.to - zoomed.from < 400000, JSON.stringify(zoomed));
  await until(page, () => /peak .* mean/.test(document.querySelector('figure[data-metric=step_seconds] .now').textContent));
  // A key does the same. A filter hides the findings of other members.
  await page.keyboard.press('0');
  await page.keyboard.press('n');
  await until(page, () => document.querySelector('.note').textContent.includes('rank '));
  await page.getByLabel('filter by tags').fill('rank=3');
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelectorAll('.findings button').length === 1);
  await page.getByLabel('filter by tags').fill('');
  assert.deepEqual(page.said, []);

  // The page shows findings even if no chart is on the screen.
  const low = await tab(b, { viewport: { width: 1280, height: 60 } });
  await low.goto(`${server.url}?token=${TOKEN}`);
  await until(low, () => window.sonde?.drawn().findings.length >= 2);
  assert.deepEqual((await drawn(low)).charts, []);
  await low.context().close();
  await server.stop();

  // If no rank is slow, the page says so.
  const calm = folder();
  await training(calm, 'calm', T, { slow: 1 });
  const other = await serve([calm], ['replay=1']);
  await page.goto(`${other.url}?token=${TOKEN}`);
  await page.getByText(/Nothing unusual so far; compared/).waitFor();
  await other.stop();
});

test('two runs over each other: each from its start, with the numbers of its own time', HANGS, async () => {
  const made = folder();
  const later = T + 86400e3 + 12345;
  await training(made, 'monday', T);
  await training(made, 'tuesday', later, { slow: 1, seconds: 300, base: 0.2 });
  const server = await serve([made], ['replay=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}`);
  await page.getByRole('button', { name: 'compare from their start' }).click();
  await until(page, () => window.sonde.drawn().sides && window.sonde.drawn().charts.length === 2 && window.sonde.drawn().charts.every((c) => c.lines.length === 2));
  const now = await drawn(page);
  assert.deepEqual(now.sides.map((s) => [s.job, s.shift]), [['monday', 0], ['tuesday', later - T]]);
  assert.deepEqual([now.range.from, now.range.to], [T, T + 599000]);
  assert.match(page.url(), /run=monday&run=tuesday/);
  for (const chart of now.charts) {
    assert.deepEqual(chart.lines.map((l) => l.tags.job), ['monday', 'tuesday']);
    for (const [i, side] of now.sides.entries()) {
      const line = chart.lines[i];
      const body = { start: Math.floor(chart.asked.from + side.shift - chart.intervalMs), end: Math.ceil(chart.asked.to + side.shift), queries: chart.expressions.map((m) => ({ m: `${m}{}{job=literal_or(${side.job})}` })) };
      const { series } = await ask(server.url, 'sonde/v1/query', TOKEN, body);
      const wanted = new Map(series.find((s) => s.query === 0).t_ns.map((t, k) => [Math.round(t / 1e3) / 1e3 - side.shift, series.find((s) => s.query === 0).values[k]]));
      assert.ok(line.t.length > 20);
      line.t.forEach((t, k) => assert.ok(near(wanted.get(t), line.mean[k]), `${chart.metric} ${side.job} at ${t - T} ms: ${line.mean[k]}, the server says ${wanted.get(t)}`));
      assert.ok(Math.abs(line.t[0] - T) < 2 * chart.intervalMs + 1000, `${side.job} begins at its start`);
    }
  }
  const of = (name) => now.charts.find((c) => c.metric === 'step_seconds').lines.find((l) => l.tags.job === name).mean[5];
  assert.ok(Math.abs(of('monday') / of('tuesday') - 2) < 0.1);
  assert.ok(now.lanes.some((l) => l.name.includes('rank')));
  // A finding names its run, and has times since the start of that run.
  const texts = await page.locator('.findings button').allInnerTexts();
  assert.ok(texts.some((t) => /^rank 3 on n2 of monday was 1\.\d+ times as slow as the others in step_seconds, from \+3:\d\d to \+6:4\d$/.test(t)), JSON.stringify(texts));
  assert.ok(!texts.some((t) => t.includes('tuesday')), JSON.stringify(texts));
  assert.deepEqual(await violations(page), []);

  // The address shows the same comparison. A key ends the comparison.
  const second = await page.context().newPage();
  await second.goto(page.url());
  await until(second, () => window.sonde?.drawn().sides && window.sonde.drawn().charts.length === 2);
  await second.close();
  await page.keyboard.press('c');
  await until(page, () => window.sonde.drawn().sides === null && window.sonde.drawn().charts.every((c) => c.lines.length === 8 || c.mode === 'band'));
  assert.deepEqual(page.said, []);
  await server.stop();
});

test('export: a picture, a table, and command lines that print the same numbers', HANGS, async () => {
  const made = folder();
  await training(made, 'job1', T);
  const server = await serve([made], ['replay=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}#from=${T + 60000}&to=${T + 300000}`);
  await until(page, () => window.sonde?.drawn().charts.length === 2 && window.sonde.drawn().charts.every((c) => c.lines.length === 4));
  await page.getByRole('button', { name: 'export' }).click();
  assert.deepEqual(await violations(page), []);
  const take = async (name) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
    return { name: download.suggestedFilename(), data: readFileSync(await download.path()) };
  };
  const png = await take('PNG');
  assert.equal(png.name, 'sonde-charts.png');
  assert.deepEqual([...png.data.subarray(0, 8)], [137, 80, 78, 71, 13, 10, 26, 10]);
  // The picture has both charts, one below the other.
  assert.ok(png.data.readUInt32BE(16) > 300 && png.data.readUInt32BE(20) > 300);
  const csv = await take('CSV');
  const [head, ...rows] = csv.data.toString().trim().split('\r\n').map((l) => l.match(/("(""|[^"])*"|[^,]*)(,|$)/g).map((c) => c.replace(/,$/, '').replace(/^"|"$/g, '')));
  assert.equal(head.join().replace(/,$/, ''), 'metric,tags,time_ms,mean,least,greatest');
  const table = new Map(rows.map(([metric, tags, t, mean]) => [`${metric} ${tags.split(',').sort()} ${t}`, Number(mean)]));
  const now = await drawn(page);
  for (const chart of now.charts)
    for (const line of chart.lines)
      line.t.forEach((t, i) => {
        if (t < T + 60000 || t + chart.intervalMs > T + 300000) return;
        assert.equal(table.get(`${chart.metric} ${line.key} ${t}`), line.mean[i]);
      });

  // A shell runs each of the command lines.
  const lines = (await page.locator('.commands').innerText()).split('\n');
  assert.equal(lines.length, 2);
  let compared = 0;
  for (const line of lines) {
    const { stdout } = await promisify(execFile)('sh', ['-c', line.replace(/^sonde /, '"$SONDE" ') + ' --json']);
    for (const s of JSON.parse(stdout)) {
      const key = Object.entries(s.tags).map(([k, v]) => `${k}=${v}`).sort().join();
      for (const [t, v] of Object.entries(s.dps)) {
        assert.ok(near(table.get(`${s.metric} ${key} ${t}`), v), `${line}: ${s.metric} ${key} at ${t} is ${v}, the table says ${table.get(`${s.metric} ${key} ${t}`)}`);
        compared++;
      }
    }
  }
  assert.equal(compared, rows.length); // the table has no other rows
  assert.deepEqual(page.said, []);
  await server.stop();
});

test('restarts of the command: a line with its number, in the overview, the charts and the nodes', HANGS, async () => {
  const made = folder();
  await training(made, 'again', T, { slow: 1 });
  const at = [150, 420];
  await record(path.join(made, 'again-n3.sonde'), 'again', 'n3', (w) => {
    for (let s = 0; s < 600; s++) w.point('cpu_percent', { host: 'n3' }, T + s * 1000, 50);
    w.annotation(T, { attempt: 0, nodes: 2 }, 'attempt 0 on 2 nodes');
    at.forEach((s, i) => w.annotation(T + s * 1000, { attempt: i + 1, nodes: 2 }, `attempt ${i + 1} on 2 nodes`));
    w.annotation(T + 300e3, {}, 'a note');
  });
  const server = await serve([made], ['replay=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}`);
  await until(page, () => window.sonde?.drawn().annotations.length === 4);
  await until(page, loaded);
  await page.getByRole('img', { name: 'over the whole run, 2 restarts' }).waitFor();
  assert.equal(await page.locator('header .restarts').innerText(), '2 restarts');
  // Finds the columns of the canvas that have the accent colour from top to bottom.
  const columns = (canvas) =>
    canvas.evaluate((c) => {
      const accent = getComputedStyle(document.documentElement).getPropertyValue('--accent').trim();
      const wanted = [1, 3, 5].map((i) => parseInt(accent.slice(i, i + 2), 16));
      const { data, width, height } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
      const is = (x, y) => wanted.every((v, k) => Math.abs(v - data[4 * (y * width + x) + k]) < 3);
      const bottom = height - 20;
      const found = [];
      for (let x = 0; x < width; x++) {
        let n = 0;
        for (let y = 0; y < bottom; y++) n += is(x, y);
        if (n > bottom * 0.8) found.push(x / devicePixelRatio);
      }
      return found;
    });
  const { range } = await drawn(page);
  const width = (canvas) => canvas.evaluate((c) => c.clientWidth);
  const overview = page.locator('.overview canvas');
  const whole = await width(overview);
  const nodes = page.locator('.heat canvas').last();
  const plot = await page.evaluate(() => window.sonde.heat.plotWidth());
  for (const [canvas, size] of [[overview, whole], [nodes, plot]]) {
    const found = await columns(canvas);
    const places = at.map((s) => ((T + s * 1000 - range.from) / (range.to - range.from)) * size);
    assert.ok(found.length >= 2 && found.every((x) => places.some((p) => Math.abs(p - x) <= 2)), JSON.stringify([found, places]));
    for (const p of places) assert.ok(found.some((x) => Math.abs(p - x) <= 2), JSON.stringify([found, places]));
  }
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.said, []);
  await server.stop();
});

test('nodes die: named, with the time; the charts of the others go on', HANGS, async () => {
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '6', '--metrics', '6', '--history', '60', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const page = await tab(b);
  await page.goto(`${url}?token=${token}`);
  await until(page, () => window.sonde?.drawn().heat.rows.length === 6);
  // The nodes run in child processes, with several nodes in each.
  const parts = readFileSync(`/proc/${sim.child.pid}/task/${sim.child.pid}/children`, 'utf8').trim().split(' ').map(Number);
  process.kill(parts.at(-1), 'SIGKILL');
  await page.locator('.missing', { hasText: 'missing: n0' }).waitFor();
  const { missing } = await ask(url, 'sonde/v1/status', token);
  assert.ok(missing.length > 0 && missing.length < 6);
  for (const host of missing) assert.match(await page.locator('header').innerText(), new RegExp(host));
  await until(page, (n) => window.sonde.drawn().findings.filter((f) => / is missing: nothing of it since /.test(f.text)).length === n, missing.length);
  const since = (await drawn(page)).range.to;
  await until(page, (t) => window.sonde.drawn().charts.some((c) => c.lines.some((l) => l.t.at(-1) > t)), since);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.said, []);
});

test('nodes that answered too late: the page loads their past as soon as they answer', HANGS, async () => {
  // For minutes, such a history keeps its buckets, so nothing else loads the past.
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '6', '--metrics', '6', '--history', '1300', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const parts = readFileSync(`/proc/${sim.child.pid}/task/${sim.child.pid}/children`, 'utf8').trim().split(' ').map(Number);
  process.kill(parts.at(-1), 'SIGSTOP');
  const page = await tab(b);
  await page.goto(`${url}?token=${token}#last=0`);
  const some = () => {
    const { heat, charts } = window.sonde?.drawn() ?? { heat: { rows: [] } };
    return heat.rows.length > 0 && heat.rows.length < 6 && charts.every((c) => !c.onScreen || c.lines.length);
  };
  await until(page, some);
  process.kill(parts.at(-1), 'SIGCONT');
  // Every row and every line begins as early as the others.
  const whole = () => {
    const { heat, charts } = window.sonde.drawn();
    const even = (all, bucket) => Math.max(...all.map((l) => l.t[0])) - Math.min(...all.map((l) => l.t[0])) <= 2 * bucket;
    const shown = charts.filter((c) => c.onScreen);
    return heat.rows.length === 6 && even(heat.rows, window.sonde.heat.intervalMs) && shown.every((c) => c.lines.length && (c.mode !== 'lines' || (c.lines.length >= 6 && even(c.lines, c.intervalMs))));
  };
  await until(page, whole);
  assert.ok((await drawn(page)).charts.some((c) => c.onScreen && c.mode === 'lines'));
  assert.deepEqual(page.said, []);
});

test('an agent is killed and started again: the line goes on', HANGS, async () => {
  const home = folder();
  const job = start(process.env.SONDE, ['run', '-l', '2', '-v', '--record', path.join(home, 'recording'), '--', process.env.SONDE_DEMO], {
    env: { ...process.env, DEMO_SECONDS: '600', SONDE_RUN_DIR: home, SONDE_RUNS: home },
  });
  const [, url] = await said(job.child, /: (http:\/\/[^ ]+) /);
  const { stdout } = await promisify(execFile)(process.env.SONDE, ['token'], { env: { ...process.env, SONDE_RUN_DIR: home } });
  const token = stdout.trim();
  const page = await tab(b);
  await page.goto(`${url}?token=${token}`);
  await until(page, () => window.sonde?.drawn().charts.find((c) => c.metric === 'loss')?.lines[0]?.t.length > 2);
  const children = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  const agents = () => children(job.child.pid).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('agent\0--folder'));
  const [agent] = agents();
  const before = (await drawn(page)).range.to;
  process.kill(agent, 'SIGKILL');
  await until(page, (t) => window.sonde.drawn().charts.find((c) => c.metric === 'loss').lines[0].t.at(-1) > t + 1000, before);
  assert.notDeepEqual(agents(), [agent]);
  await until(page, () => window.sonde.drawn().live);
  await page.keyboard.press(' ');
  await until(page, () => location.hash.includes('from='));
  const { range } = await drawn(page);
  const result = await compare(page, url, token, range.to);
  assert.ok(result.compared > 5, JSON.stringify(result));
  assert.deepEqual(page.said, []);
  job.child.kill('SIGINT');
  await job.gone;
});

test('a browser whose clock is an hour behind, or ahead: the job’s times count', HANGS, async () => {
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '2', '--metrics', '6', '--history', '60', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  for (const off of [-3600e3, 3600e3]) {
    const page = await tab(b);
    await page.addInitScript((ms) => {
      const now = Date.now.bind(Date);
      Date.now = () => now() + ms;
    }, off);
    await page.goto(`${url}?token=${token}`);
    await until(page, loaded);
    await until(page, () => document.querySelector('.state').textContent === 'running');
    const { range, charts } = await drawn(page);
    assert.ok(Math.abs(range.to - Date.now()) < 10000, `the range ends ${range.to - Date.now()} ms from now`);
    const last = Math.max(...charts.flatMap((c) => c.lines.flatMap((l) => l.t)));
    await until(page, (t) => window.sonde.drawn().charts.some((c) => c.lines.some((l) => l.t.at(-1) > t)), last);
    assert.deepEqual(page.said, []);
    await page.context().close();
  }
});

test('a session of a browser changes nothing, from this page or another', HANGS, async () => {
  const home = folder();
  const job = start(process.env.SONDE, ['run', '-l', '1', '-v', '--no-record', '--', process.env.SONDE_DEMO], {
    env: { ...process.env, DEMO_SECONDS: '600', SONDE_RUN_DIR: home, SONDE_RUNS: home },
  });
  const [, url] = await said(job.child, /: (http:\/\/[^ ]+) /);
  const { stdout } = await promisify(execFile)(process.env.SONDE, ['token'], { env: { ...process.env, SONDE_RUN_DIR: home } });
  const page = await tab(b);
  await page.goto(`${url}?token=${stdout.trim()}`);
  await until(page, loaded);
  const post = (target, body) => page.evaluate(async ([t, text]) => (await fetch(t, { method: 'POST', body: text, headers: { 'Content-Type': 'application/json' } })).status, [target, body]);
  // These requests have the session's cookie.
  assert.equal(await post('sonde/v1/query', JSON.stringify({ start: 'first', queries: [{ m: 'none:loss' }] })), 200);
  const note = JSON.stringify({ startTime: Math.floor(Date.now() / 1000), description: 'from a browser' });
  assert.equal(await post('api/annotation', note), 403);
  assert.equal(await post('api/put', '{"metric":"loss","value":1,"timestamp":1}'), 403);
  assert.equal(await post('sonde/v1/reboot', '{}'), 403);
  assert.equal(await post('sonde/v1/dump', '{"to":"/tmp/x"}'), 403);
  const { annotations } = await page.evaluate(async () => (await fetch('sonde/v1/annotations')).json());
  assert.ok(!annotations.some((a) => a.text === 'from a browser'));
  job.child.kill('SIGINT');
  await job.gone;
});

test('the keyboard alone: everything is reached, and the focus is seen', HANGS, async () => {
  const made = folder();
  await training(made, 'job1', T);
  await training(made, 'job2', T + 3600e3);
  const server = await serve([made], ['replay=1']);
  const page = await tab(b);
  await page.goto(`${server.url}?token=${TOKEN}`);
  await until(page, () => window.sonde?.drawn().findings.length >= 2);
  await until(page, loaded);
  const reached = [];
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      if (e === document.body) return null;
      const style = getComputedStyle(e);
      return { what: e.getAttribute('aria-label') || e.dataset.metric || e.textContent, outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 };
    });
    if (!at) break;
    assert.ok(at.outline, `${at.what} does not show that it has the focus`);
    reached.push(at.what);
  }
  const all = await page.evaluate(() => [...document.querySelectorAll('button, input, select, figure, canvas[tabindex], code[tabindex]')].filter((e) => !e.disabled && e.checkVisibility()).map((e) => e.getAttribute('aria-label') || e.dataset.metric || e.textContent));
  assert.deepEqual(all.filter((what) => !reached.includes(what)), []);
  // Keys also select a span, a node and all lines of a band.
  await page.locator('.lanes canvas').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await until(page, () => /peak .* mean/.test(document.querySelector('figure[data-metric=step_seconds] .now').textContent));
  await page.keyboard.press('0');
  await page.locator('.heat canvas').last().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await until(page, () => location.hash.includes('filter=host%3Dn2'));
  await page.keyboard.press('Escape');
  await until(page, () => !location.hash.includes('filter'));
  await page.keyboard.press('c');
  await until(page, () => window.sonde.drawn().sides !== null);
  await page.keyboard.press('e');
  assert.ok(await page.locator('dialog.export').isVisible());
  await page.keyboard.press('Escape');
  assert.ok(await fits(page));
  assert.deepEqual(page.said, []);
  await server.stop();
});

// With SONDE_WEB_MEMORY_SECONDS=600, the test takes ten minutes.
test('minutes of live charts: the page’s memory does not grow', { timeout: HANGS.timeout + 1000 * Number(process.env.SONDE_WEB_MEMORY_SECONDS ?? 12) }, async () => {
  const seconds = Number(process.env.SONDE_WEB_MEMORY_SECONDS ?? 12);
  const sim = start(process.env.SONDE, ['simulate', '--nodes', '4', '--metrics', '40', '--history', '120', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const page = await tab(b);
  await page.goto(`${url}?token=${token}#last=60`);
  await until(page, loaded);
  await until(page, ok);
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.enable');
  // Returns the size of the heap after a garbage collection, and the numbers of elements, listeners
  // and buckets of lines.
  const held = async () => {
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    const { nodes, jsEventListeners } = await session.send('Memory.getDOMCounters');
    const buckets = await page.evaluate(() => window.sonde.drawn().charts.reduce((n, c) => n + c.lines.reduce((m, l) => m + l.t.length, 0), 0));
    return { usedSize, nodes, jsEventListeners, buckets };
  };
  const to = () => window.sonde.drawn().range.to;
  const wait = async (s) => until(page, (t) => window.sonde.drawn().range.to >= t, (await page.evaluate(to)) + s * 1000);
  page.setDefaultTimeout(WAITS_MS + 1000 * seconds);
  await wait(Math.max(5, seconds / 4)); // until every view was drawn once
  const first = await held();
  const samples = [];
  for (let i = 0; i < 4; i++) {
    await wait((seconds * 3) / 16);
    samples.push(await held());
  }
  const last = samples.at(-1);
  console.log(JSON.stringify({ seconds, first, samples }));
  assert.ok(last.buckets <= first.buckets * 1.5 + 500, JSON.stringify([first, last]));
  assert.ok(last.nodes <= first.nodes * 1.2 + 200 && last.jsEventListeners <= first.jsEventListeners * 1.2 + 50, JSON.stringify([first, last]));
  assert.ok(Math.min(...samples.map((s) => s.usedSize)) <= first.usedSize * 1.3 + 2e6, JSON.stringify([first, samples]));
  assert.deepEqual(page.said, []);
});
