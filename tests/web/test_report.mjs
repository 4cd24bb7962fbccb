// Tests the HTML of `sonde report` in Chromium: opened from disk without a network, in light and
// dark themes, on a small screen and on paper.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { browser, endAll, folder, need, require, tab } from './harness.mjs';
import { runReport } from './run_report.mjs';

need('packages', 'chromium');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
let b, file;

before(async () => {
  b = await browser();
  file = await runReport(folder());
});
after(endAll);

// Opens the report, and collects its requests and console messages.
async function open(options = {}, media) {
  const page = await tab(b, { offline: true, ...options });
  const asked = [];
  page.on('request', (r) => asked.push(r.url().split(',')[0]));
  if (media) await page.emulateMedia({ media });
  await page.goto(pathToFileURL(file).href);
  return { page, asked };
}

// Runs axe on the page. The policy of the page refuses scripts such as axe, so the page must be
// opened with bypassCSP. The rules of axe are about elements, which are the same without the
// policy.
async function violations(page) {
  return page.evaluate(async (source) => {
    (0, eval)(source);
    const found = await window.axe.run(document, { resultTypes: ['violations'] });
    return found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`);
  }, axe);
}

const cases = [
  ['light', {}, null],
  ['dark', { colorScheme: 'dark' }, null],
  ['one column', { viewport: { width: 900, height: 800 } }, null],
  ['small', { viewport: { width: 390, height: 800 }, hasTouch: true }, null],
  ['print', { colorScheme: 'dark', viewport: { width: 720, height: 1000 } }, 'print'],
];

for (const [name, options, media] of cases)
  test(`${name}: no message, no request, readable`, async () => {
    const { page, asked } = await open({ bypassCSP: true, ...options }, media);
    assert.deepEqual(asked.filter((url) => !url.startsWith('data:')), [pathToFileURL(file).href]);
    assert.deepEqual(page.said, []);
    assert.deepEqual(await violations(page), []);
    const seen = await page.evaluate(() => {
      const boxes = (selector) => [...document.querySelectorAll(selector)].map((e) => e.getBoundingClientRect());
      const charts = [...document.querySelectorAll('svg')].map((svg) => {
        const whole = svg.getBoundingClientRect();
        const texts = [...svg.querySelectorAll('text')].map((t) => t.getBoundingClientRect()).filter((t) => t.width > 0);
        const times = texts.slice(3);
        return { outside: [...svg.querySelectorAll('text')].filter((e) => { const t = e.getBoundingClientRect(); return t.width && (t.left < whole.left - 1 || t.right > whole.right + 1 || t.bottom > whole.bottom + 2); }).map((e) => e.textContent),
          overlap: times.filter((t, i) => i && t.left < times[i - 1].right).length, least: Math.min(...texts.map((t) => t.height)), most: Math.max(...texts.map((t) => t.height)) };
      });
      const tall = [...document.querySelectorAll('td')].filter((td) => td.getBoundingClientRect().height > 90).map((td) => td.innerText);
      // Counts the tables that scroll.
      const cut = [...document.querySelectorAll('.s')].filter((s) => s.scrollWidth > s.clientWidth).length;
      return { cut, charts, tall, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth, figures: boxes('figure').length, findings: boxes('li').length,
        background: getComputedStyle(document.body).backgroundColor, colour: getComputedStyle(document.body).color };
    });
    assert.ok(seen.figures >= 12 && seen.findings >= 4, JSON.stringify(seen));
    assert.ok(seen.wide <= 0, `${seen.wide} px beyond the right edge`);
    assert.deepEqual(seen.tall, [], 'names are not squeezed into a column of letters');
    for (const chart of seen.charts) assert.deepEqual([chart.outside, chart.overlap, chart.least >= 10, chart.most <= 20], [[], 0, true, true], JSON.stringify(chart));
    const dark = name === 'dark';
    assert.equal(seen.background, dark ? 'rgb(20, 24, 29)' : 'rgb(255, 255, 255)');
    if (media) {
      assert.equal(seen.colour, 'rgb(0, 0, 0)');
      assert.equal(seen.cut, 0, 'paper does not scroll');
      const pdf = await page.pdf({ format: 'A4' });
      const pages = pdf.toString('latin1').match(/\/Type\s*\/Page\b/g).length;
      assert.ok(pages >= 2 && pages <= 8, `${pages} pages`);
    }
    await page.context().close();
  });

test('its policy lets nothing run', async () => {
  const { page } = await open();
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.ran = true';
    document.body.append(script);
    return window.ran === true;
  });
  assert.equal(ran, false);
  await page.context().close();
});
