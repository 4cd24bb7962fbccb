// Checks that all tests of the page use, and a recording that several tests show.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ask, drawn, folder, record, require } from './harness.mjs';

export const T = Date.UTC(2026, 0, 1, 12);

// Checks that each drawn line has the buckets of the API. Buckets after `settledMs` are left out,
// because those of a running job may still change.
export async function compare(page, url, token, settledMs = Infinity) {
  const all = (await drawn(page)).charts.filter((c) => c.expressions.length && c.lines.length);
  let compared = 0;
  for (const chart of all) {
    const body = { start: Math.floor(chart.asked.from), end: Math.ceil(Math.max(chart.asked.to, ...chart.lines.flatMap((l) => l.t))), queries: chart.expressions.map((m) => ({ m })) };
    const { series, error } = await ask(url, 'sonde/v1/query', token, body);
    assert.ok(series, JSON.stringify(error));
    for (const line of chart.lines) {
      const of = (query) => series.find((s) => s.query === query && JSON.stringify(sorted(s.tags)) === JSON.stringify(sorted(line.tags)));
      const wanted = [of(0), of(1) ?? of(0), of(2) ?? of(0)].map((s) => new Map(s.t_ns.map((t, i) => [Math.round(t / 1e3) / 1e3, s.values[i]])));
      line.t.forEach((t, i) => {
        if (t + chart.intervalMs * 2 > settledMs) return;
        ['mean', 'low', 'high'].forEach((name, k) => {
          const value = wanted[k].get(t);
          assert.ok(near(value, line[name][i]), `${chart.metric} ${line.key} ${name} at ${t}: ${line[name][i]} is drawn, the server says ${value} (buckets of ${chart.intervalMs} ms from ${chart.asked.from}; beside it ${line.t.slice(Math.max(0, i - 2), i + 3)})`);
        });
        compared++;
      });
      // No bucket is missing.
      for (const t of wanted[0].keys())
        if (t + chart.intervalMs * 2 <= settledMs && t + chart.intervalMs <= body.end) assert.ok(line.t.includes(t), `${chart.metric} lacks the bucket at ${t}`);
    }
  }
  return { charts: all.length, compared };
}
const sorted = (tags) => Object.entries(tags).sort();
export const near = (a, c) => (a === null && (c === null || Number.isNaN(c))) || Math.abs(a - c) <= 1e-9 * Math.max(1, Math.abs(a));

export async function violations(page) {
  await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations: found } = await page.evaluate(() => window.axe.run());
  return found.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 2).join(' ')}`);
}

export const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
export const loaded = () => window.sonde?.drawn().charts.some((c) => c.lines.length);
export const ok = () => document.documentElement.dataset.connection === 'ok';

// Records 120 s of two nodes: metrics of the program and of the nodes, a gap, spans of two ranks,
// and annotations.
export async function twoNodes() {
  const made = folder();
  for (const [n, host] of ['n1', 'n2'].entries())
    await record(path.join(made, `${host}.sonde`), 'job7', host, (w) => {
      w.metric('steps_total', 'counter', '', 'Steps that were done.');
      w.metric('cpu_percent', 'gauge', 'percent', 'Busy.');
      w.metric('loss', 'gauge', '', 'What is made small.');
      for (let s = 0; s < 120; s++) {
        if (s >= 50 && s < 70 && n === 1) continue;
        w.point('cpu_percent', { host }, T + s * 1000, 40 + n * 20 + Math.sin(s / 9) * 15);
        w.point('loss', { host, rank: n }, T + s * 1000 + 100, 2 / (1 + s * 0.05) + n);
        // The loss has a peak.
        w.point('loss', { host, rank: n }, T + s * 1000 + 600, s === 30 ? 9 : 2 / (1 + s * 0.05) + n);
        // The counter restarts once.
        w.point('steps_total', { host }, T + s * 1000, s < 90 ? s * 3 : (s - 90) * 3);
      }
      for (let e = 0; e < 6; e++) {
        w.span(10 * e + 1 + n * 100, 0, T + e * 20000, T + e * 20000 + 18000, { rank: n, number: e }, 'epoch');
        w.span(10 * e + 2 + n * 100, 10 * e + 1 + n * 100, T + e * 20000 + 2000, T + e * 20000 + 9000 + n * 3000, { rank: n }, 'forward');
      }
      if (n === 0) w.annotation(T + 60000, { rank: 0 }, 'rate halved');
    });
  return made;
}
