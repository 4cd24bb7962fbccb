// Measures how long a user of the page waits, and the costs of the page.
//
//   bytes          the bytes that a first visit transfers
//   first paint    the time from the start of the navigation to the first contentful paint, with
//                  an empty cache, and to the first line of a chart; the same for the page of
//                  Netdata, if it is installed
//   many nodes     the time from the start of the navigation until the overview, 1,000 rows of an
//                  hour and all charts on the screen have their data
//   frames         the intervals between frames while 100 charts are live, and the processor time
//                  of the page's thread and of the server meanwhile
//
// `node page.mjs visits manyNodes frames` runs all of them. Each figure is a JSON object: `budget`
// is the target, `ratio` the used share of it; above 1 the target is missed. With a `peer`, `ratio`
// is the share of the peer's figure. Other load on the machine affects the figures. The server's
// share is that of the serving process, minus its load without a page.
import { readdirSync, readFileSync } from 'node:fs';
import { browser, endAll, folder, need, said, start, tab, until } from '../../tests/web/harness.mjs';
import { netdata, netdataLines } from './netdata.mjs';

need('page', 'packages', 'chromium');
const VISITS = Number(process.env.SONDE_BENCH_VISITS ?? 7);
const SECONDS = Number(process.env.SONDE_BENCH_SECONDS ?? 10);
const CHARTS = 100;
const TICKS_A_SECOND = 100; // the unit of times in /proc/PID/stat

const report = (metric, value, unit, budget, more = {}) =>
  console.log(JSON.stringify({ bench: 'web', metric, value: Number(value.toPrecision(4)), unit, budget, ratio: Number((value / budget).toPrecision(3)), ...more }));
const beside = (metric, value, unit, peer, peerValue) =>
  console.log(JSON.stringify({ bench: 'web', metric, value: Number(value.toPrecision(4)), unit, peer, peer_value: Number(peerValue.toPrecision(4)), ratio: Number((value / peerValue).toPrecision(3)) }));
const sorted = (values) => [...values].sort((a, b) => a - b);
const quantile = (values, q) => sorted(values)[Math.min(values.length - 1, Math.floor(values.length * q))];
const median = (values) => quantile(values, 0.5);

async function simulate(options) {
  const sim = start(process.env.SONDE, ['simulate', '--port', '4400', ...options], { env: { ...process.env, TMPDIR: folder() } });
  const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  const stop = async () => {
    sim.child.stdin.end();
    sim.child.kill('SIGTERM');
    await sim.gone;
  };
  return { pid: sim.child.pid, url: `${url}?token=${token}`, stop };
}

// Returns the seconds of processor time of the serving process.
function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

const pause = (seconds) => new Promise((go) => setTimeout(go, 1000 * seconds));
const lines = () => window.sonde?.drawn().charts.some((c) => c.lines.length) && performance.now();

// Waits until the browser rests: for each new window it loads pages of its own interface, on the
// processors that the visited page needs.
async function rested() {
  const used = () => {
    let sum = 0;
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('chrom')) sum += cpuSeconds(pid);
      } catch {
        // it has ended
      }
    }
    return sum;
  };
  for (let before = used(), after; ; before = after) {
    await pause(0.5);
    after = used();
    if (after - before < 0.02) return;
  }
}

// Visits a page with an empty cache, in a new window of a running browser; returns the times, the
// bytes, and the page's messages. The browser refuses its requests to other machines at once.
async function visit(b, url, ready) {
  const page = await tab(b);
  await rested();
  const { origin } = new URL(url);
  await page.route((to) => to.origin !== origin, (route) => route.abort());
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  const bytes = { all: 0, files: 0 };
  const paths = new Map();
  session.on('Network.responseReceived', (e) => paths.set(e.requestId, new URL(e.response.url).pathname));
  session.on('Network.loadingFinished', (e) => {
    bytes.all += e.encodedDataLength;
    if (/^\/(page\.(js|css))?$/.test(paths.get(e.requestId) ?? '')) bytes.files += e.encodedDataLength;
  });
  await page.goto(url);
  const done = await page.waitForFunction(ready, null, { polling: 'raf' });
  const readyMs = await done.jsonValue();
  const paintMs = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
  await page.context().close();
  return { readyMs, paintMs, bytes, said: page.said };
}

function complain(visited) {
  for (const { said: messages } of visited) if (messages.length) console.error(messages.join('\n'));
}

async function visits(b) {
  const server = await simulate(['--nodes', '2', '--metrics', '24', '--history', '600']);
  const peer = await netdata();
  if (!peer) console.error('bench/web: no netdata: the page is compared with budgets alone');
  const all = [];
  const peers = [];
  for (let i = 0; i < VISITS; i++) {
    all.push(await visit(b, server.url, lines));
    if (peer) peers.push(await visit(b, peer.url, netdataLines));
  }
  complain(all);
  const paints = all.map((v) => v.paintMs);
  report('first_paint', median(paints), 'ms', 300, { best: Math.min(...paints), visits: VISITS });
  report('first_line', median(all.map((v) => v.readyMs)), 'ms', 1000, { best: Math.min(...all.map((v) => v.readyMs)), visits: VISITS });
  report('page_bytes', all[0].bytes.files, 'bytes', 200 * 1024, { until_first_line: all[0].bytes.all });
  if (peer) {
    beside('first_paint_beside_peer', median(paints), 'ms', 'netdata', median(peers.map((v) => v.paintMs)));
    beside('first_line_beside_peer', median(all.map((v) => v.readyMs)), 'ms', 'netdata', median(peers.map((v) => v.readyMs)));
    beside('bytes_until_first_line', median(all.map((v) => v.bytes.all)), 'bytes', 'netdata', median(peers.map((v) => v.bytes.all)));
    await peer.stop();
  }
  await server.stop();
}

async function manyNodes(b) {
  const server = await simulate(['--nodes', '1000', '--metrics', '24', '--history', '3600', '--rate', '1']);
  const ready = () => {
    const d = window.sonde?.drawn();
    return d && d.range.to - d.range.from > 3500e3 && d.heat.rows.length === 1000 && d.overview.length > 0 && d.charts.length > 0 && d.charts.every((c) => c.lines.length || !c.onScreen) && performance.now();
  };
  const all = [];
  for (let i = 0; i < 3; i++) all.push(await visit(b, `${server.url}#last=0`, ready));
  complain(all);
  const times = all.map((v) => v.readyMs);
  report('thousand_nodes_one_hour', median(times), 'ms', 1000, { best: Math.min(...times), first: times[0], bytes: all[0].bytes.all });
  await server.stop();
}

async function frames(b) {
  const server = await simulate(['--nodes', '4', '--metrics', '130', '--history', '120']);
  await pause(2);
  let before = cpuSeconds(server.pid);
  await pause(SECONDS);
  const without = (cpuSeconds(server.pid) - before) / SECONDS;
  const page = await tab(b, { viewport: { width: 2400, height: 5400 } });
  await page.goto(`${server.url}#last=60`);
  await until(page, () => window.sonde?.drawn().charts.some((c) => c.lines.length));
  const more = page.locator('.group > .more', { hasText: /more$/ });
  while (await more.count()) await more.first().click();
  await until(page, (n) => window.sonde.drawn().charts.filter((c) => c.lines.length).length >= n, CHARTS);
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const metrics = async () => Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
  const first = await metrics();
  before = cpuSeconds(server.pid);
  const result = await page.evaluate(
    (ms) =>
      new Promise((done) => {
        const times = [];
        const begin = performance.now();
        const frame = (t) => {
          times.push(t);
          if (performance.now() - begin < ms) requestAnimationFrame(frame);
          else done({ intervals: times.slice(1).map((x, i) => x - times[i]), charts: window.sonde.drawn().charts.filter((c) => c.lines.length).length, heap: performance.memory?.usedJSHeapSize });
        };
        requestAnimationFrame(frame);
      }),
    SECONDS * 1000,
  );
  const last = await metrics();
  const used = (cpuSeconds(server.pid) - before) / SECONDS;
  const { intervals, charts } = result;
  const mean = intervals.reduce((a, c) => a + c, 0) / intervals.length;
  report('frame_interval', mean, 'ms', 1000 / 60, { median: median(intervals), p95: quantile(intervals, 0.95), max: Math.max(...intervals), frames_per_second: 1000 / mean, charts });
  report('page_thread', ((last.TaskDuration - first.TaskDuration) / SECONDS) * 100, '% of a core', 100, { script: ((last.ScriptDuration - first.ScriptDuration) / SECONDS) * 100, heap_bytes: result.heap });
  report('server', Math.max(0.01, (used - without) * 100), '% of a core', 20, { without_page: without * 100 });
  await page.context().close();
  await server.stop();
}

const b = await browser();
const parts = { visits, manyNodes, frames };
const wanted = process.argv.slice(2);
for (const [name, measure] of Object.entries(parts)) if (!wanted.length || wanted.includes(name)) await measure(b);
await endAll();
