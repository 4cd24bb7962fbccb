// Takes the pictures of the page: node tests/web/screenshots.mjs FOLDER [WHICH…]. It needs the
// environment in tests/web/meson.build. docs/page.png is `nodes`, docs/page-job.png is `job`,
// docs/report.png is `report`. docs/demo.png is `demo`: a recording of examples/ai_in_the_loop, in
// SONDE_RECORDING.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { browser, endAll, folder, need, record, said, serve, start, tab, TOKEN, until } from './harness.mjs';
import { runReport } from './run_report.mjs';

need('page', 'packages', 'chromium');
const [out, ...wanted] = process.argv.slice(2);
if (!out) throw new Error('usage: node tests/web/screenshots.mjs FOLDER [WHICH…]');
const b = await browser();

async function shoot(name, url, token, { width = 1400, height = 900, scheme = 'light', full = false, before, ready } = {}) {
  if (wanted.length && !wanted.includes(name)) return;
  const page = await tab(b, { viewport: { width, height }, colorScheme: scheme });
  await page.goto(`${url}?token=${token}`);
  await until(page, ready ?? (() => window.sonde?.drawn().charts.some((c) => c.lines.length)));
  if (before) await before(page);
  // Waits until no request is pending and the page is drawn.
  await page.waitForLoadState('networkidle').catch(() => undefined);
  await page.waitForTimeout(600);
  await page.screenshot({ path: path.join(out, `${name}.png`), fullPage: full });
  if (page.said.length) console.log(name, page.said);
  await page.context().close();
}

const wants = (...names) => !wanted.length || names.some((n) => wanted.includes(n));

// Records a training of four ranks on two nodes. One rank is slower towards the end.
async function training({ made = folder(), job = 'training-4711', ago = 1800e3, better = 1 } = {}) {
  const T = Date.now() - ago;
  for (const [n, host] of ['n1', 'n2'].entries())
    await record(path.join(made, `${job}-${host}.sonde`), job, host, (w) => {
      w.metric('loss', 'gauge', '', 'Of the training set.');
      w.metric('step_seconds', 'gauge', 'seconds', 'Time of one step.');
      w.metric('samples_total', 'counter', '', 'Samples that went through the network.');
      w.metric('cpu_percent', 'gauge', 'percent', 'Share of all processors that was busy.');
      w.metric('memory_used_bytes', 'gauge', 'bytes', 'Memory that is not available.');
      w.metric('gpu_utilization_percent', 'gauge', 'percent', 'Share of time in which the GPU worked.');
      w.metric('gpu_power_watts', 'gauge', 'watts', 'Power.');
      w.metric('network_receive_bytes_total', 'counter', 'bytes', 'Bytes received. Tag interface.');
      for (let s = 0; s < 1800; s++) {
        const t = T + s * 1000;
        const busy = s % 300 < 280;
        const noise = (k) => Math.sin(s * 12.9898 + k * 78.233 + n) % 1;
        w.point('cpu_percent', { host }, t, (busy ? 62 : 18) + 6 * noise(1));
        w.point('memory_used_bytes', { host }, t, (40 + s * 0.01 + n) * 2 ** 30);
        w.point('network_receive_bytes_total', { host, interface: 'hsn0' }, t, s * 3e8 + (n ? 1e7 * s : 0));
        for (const gpu of [0, 1]) {
          const rank = 2 * n + gpu;
          const slow = rank === 3 && s > 1200 ? 1.35 : 1;
          w.point('loss', { host, rank }, t, 2.3 * Math.exp((-s * better) / 700) + 0.12 + 0.03 * noise(rank));
          w.point('step_seconds', { host, rank }, t, slow * (0.42 + 0.02 * noise(rank + 5)));
          w.point('samples_total', { host, rank }, t, Math.floor(s * 512));
          w.point('gpu_utilization_percent', { host, gpu }, t, busy ? 91 / slow + 5 * noise(rank + 9) : 4);
          w.point('gpu_power_watts', { host, gpu }, t, busy ? 420 / slow + 20 * noise(rank + 9) : 95);
        }
      }
      for (const gpu of [0, 1])
        for (let e = 0; e < 6; e++) {
          const rank = 2 * n + gpu;
          const from = T + e * 300e3;
          const id = 1000 * (rank + 1) + 20 * e;
          w.span(id, 0, from, from + 296e3, { rank, number: e }, 'epoch');
          w.span(id + 1, id, from + 1e3, from + 280e3, { rank }, 'train');
          w.span(id + 2, id, from + 280e3, from + 290e3, { rank }, 'validate');
          w.span(id + 3, id, from + 290e3, from + 296e3, { rank }, 'checkpoint');
        }
      if (n === 0) w.annotation(T + 900e3, {}, 'learning rate halved');
    });
  return made;
}

if (wants('job', 'job-dark', 'spans', 'phone', 'span')) {
  const server = await serve([await training()], ['replay=1']);
  await shoot('job', server.url, TOKEN);
  await shoot('job-dark', server.url, TOKEN, { scheme: 'dark' });
  await shoot('spans', server.url, TOKEN, { before: (page) => page.keyboard.press('s') });
  await shoot('phone', server.url, TOKEN, { width: 390, height: 844, scheme: 'dark' });
  await shoot('span', server.url, TOKEN, {
    height: 1600,
    before: async (page) => {
      const at = await page.locator('.lanes canvas').boundingBox();
      await page.mouse.click(at.x + at.width * 0.6, at.y + 20);
    },
  });
}
if (wants('compare', 'compare-phone', 'export')) {
  const made = await training({ job: 'training-4710', ago: 90000e3 });
  await training({ made, better: 1.4 });
  const server = await serve([made], ['replay=1']);
  const compare = async (page) => {
    await page.keyboard.press('c');
    await until(page, () => window.sonde.drawn().sides && window.sonde.drawn().charts.some((c) => c.lines.length === 2));
  };
  await shoot('compare', server.url, TOKEN, { before: compare });
  await shoot('compare-phone', server.url, TOKEN, { width: 390, height: 844, scheme: 'dark', before: compare });
  await shoot('export', server.url, TOKEN, { before: (page) => page.keyboard.press('e') });
}
if (wants('nodes', 'thousand')) {
  for (const [name, nodes, scheme] of [['nodes', 64, 'dark'], ['thousand', 1000, 'light']]) {
    if (!wants(name)) continue;
    const sim = start(process.env.SONDE, ['simulate', '--nodes', String(nodes), '--metrics', '24', '--history', '600', '--port', '4300'], { env: { ...process.env, TMPDIR: folder() } });
    const [, url, token] = await said(sim.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
    await shoot(name, url, token, { scheme, ready: () => window.sonde?.drawn().heat.rows.length >= 64 && window.sonde.drawn().charts.some((c) => c.mode === 'band' && c.lines.length) });
  }
}
if (wants('empty')) {
  const server = await serve([folder()]);
  await shoot('empty', server.url, TOKEN, { height: 500, ready: () => document.querySelector('.empty h2') });
}
if (wants('token')) {
  const server = await serve([folder()]);
  const page = await tab(b, { viewport: { width: 900, height: 400 } });
  await page.goto(server.url);
  await page.screenshot({ path: path.join(out, 'token.png') });
}
if (wants('report')) {
  const page = await tab(b, { viewport: { width: 1100, height: 1500 } });
  await page.goto(pathToFileURL(await runReport(folder())).href);
  await page.screenshot({ path: path.join(out, 'report.png') });
  await page.context().close();
}
if (wanted.includes('demo')) {
  const replay = start(process.env.SONDE, ['replay', process.env.SONDE_RECORDING]);
  const [, url, token] = await said(replay.child, /(http:\/\/[^/]+\/)\?token=(\w+)/);
  await shoot('demo', url, token, { height: 760 });
}
await endAll();
