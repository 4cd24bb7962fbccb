// Opens the page of the job around this process, which has run examples/ai_in_the_loop: node
// ai_in_the_loop.mjs ITERATIONS. Checks that the page shows the panels of the paper's figure 3 and
// the phases. Exits with 77 without a browser (harness.mjs).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { compare, violations } from './checks.mjs';
import { browser, drawn, endAll, need, tab, until } from './harness.mjs';

need('page', 'packages', 'chromium');
const iterations = Number(process.argv[2]);
const url = `${process.env.SONDE_URL}/`;
const token = readFileSync(process.env.SONDE_TOKEN_FILE, 'utf8').trim();

try {
  const page = await tab(await browser());
  await page.goto(`${url}?token=${token}`);
  await until(page, (count) => window.sonde?.drawn().lanes.flatMap((lane) => lane.spans).filter((p) => p.span.name === 'iteration').length === count, iterations);
  const wanted = ['actual', 'predicted', 'difference', 'cpu_percent'];
  await until(page, (names) => names.every((name) => window.sonde.drawn().charts.some((c) => c.metric === name && c.lines.length)), wanted);
  const { charts, lanes } = await drawn(page);
  const points = ([line]) => line.mean.filter((v) => v !== null).length;
  for (const name of wanted) {
    const { lines } = charts.find((c) => c.metric === name);
    assert.equal(lines.length, 1, name);
    assert.ok(points(lines) > 0, name);
  }
  const spans = lanes.flatMap((lane) => lane.spans.map((p) => p.span.name));
  const names = new Set(spans);
  for (const phase of ['taylor', 'inference', 'training_set', 'training', 'terms', 'points']) assert.ok(names.has(phase), phase);
  const { charts: compared } = await compare(page, url, token, Date.now() - 5000);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.said, []);
  console.log(`the page shows ${wanted.join(', ')} and ${spans.length} spans; ${compared} charts have the numbers of the API`);
} finally {
  await endAll();
}
