// Draws reports of sonde.dask in Chromium and prints their contents as JSON, for
// tests/python/test_dask_report.py: node draw_report.mjs FILE…
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { browser, endAll, need, require, tab, until } from './harness.mjs';

need('packages', 'chromium');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const b = await browser();
const LARGE_ROWS = 32;

// Waits for two frames. Then the page has drawn all changes.
const frames = (page) => page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => go()))));
const drawn = async (page) => {
  await frames(page);
  return page.evaluate(() => window.report.drawn());
};
const tip = (page) => page.evaluate(() => (document.querySelector('.tip').hidden ? null : document.querySelector('.tip').innerText));

async function colours(page, at) {
  return page.evaluate((points) => {
    const canvas = document.querySelector('.lanes canvas');
    // All pixels are read at once, because Chromium prints a warning on the second call.
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const at = ([x, y]) => 4 * (Math.round(y * devicePixelRatio) * canvas.width + Math.round(x * devicePixelRatio));
    return points.map((point) => [...data.slice(at(point), at(point) + 4)]);
  }, at);
}

async function look(file, colorScheme) {
  const page = await tab(b, { colorScheme, timezoneId: 'UTC', serviceWorkers: 'block' });
  const asked = [];
  page.on('request', (r) => asked.push(r.url().slice(0, 60)));
  await page.goto(pathToFileURL(file).href);
  await until(page, () => document.querySelector('main'));
  const seen = { whole: null, said: page.said, asked };
  if (await page.locator('.empty').count()) {
    seen.empty = await page.locator('main').innerText();
  } else {
    seen.whole = await drawn(page);
    seen.orders = { prefix: seen.whole.flame };
    if (seen.whole.rows.length > LARGE_ROWS) {
      await page.mouse.move(700, 300);
      await page.mouse.wheel(0, -600);
      seen.zoomed = await drawn(page);
      await page.context().close();
      return { ...seen, violations: [] }; // the other checks run only with a small report
    }
    seen.title = await page.title();
    seen.header = await page.locator('header').innerText();
    seen.about = await page.locator('.bar .about').first().innerText();
    seen.table = await page.$$eval('tbody tr', (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
    seen.legend = await page.$$eval('.legend button', (all) => all.map((one) => [one.textContent, getComputedStyle(one.querySelector('.swatch')).backgroundColor]));
    seen.elements = await page.evaluate(() => document.querySelectorAll('img, iframe, object, script').length);
    const canvas = page.locator('.lanes canvas');
    const place = await canvas.boundingBox();
    const boxes = seen.whole.rows.flatMap((row) => row.boxes.filter((one) => one.w > 4).map((one) => ({ ...one, y: row.y + 1, height: row.height })));
    const some = boxes.filter((_, i) => i % Math.ceil(boxes.length / 5) === 0);
    seen.pixels = await colours(page, some.map((one) => [one.x + 2.5, one.y]));
    seen.some = [];
    for (const one of some) {
      await page.mouse.move(place.x + one.x + one.w / 2, place.y + one.y + one.height / 2 - 1);
      seen.some.push([one.key, await tip(page)]);
    }
    const bins = seen.whole.rows.flatMap((row) => row.bins.filter((one) => one.tasks > 1 && !row.boxes.some((box) => Math.abs(box.x - one.x) < 3 || (box.x < one.x + 1 && box.x + box.w > one.x))).map((one) => ({ ...one, y: row.y + 1 })));
    if (bins.length) {
      await page.mouse.move(place.x + bins[0].x + 0.5, place.y + bins[0].y);
      seen.bin = [bins[0].tasks, await tip(page)];
    }
    await page.mouse.move(place.x + place.width / 2, place.y + place.height / 2);
    await page.mouse.wheel(0, -600);
    seen.zoomed = await drawn(page);
    await page.keyboard.press('0');
    seen.again = (await drawn(page)).range;
    await page.keyboard.press('+');
    seen.plus = (await drawn(page)).range;
    await page.keyboard.press('ArrowRight');
    seen.right = (await drawn(page)).range;
    await page.keyboard.press('0');
    await page.mouse.move(place.x + 200, place.y + 30);
    await page.mouse.down();
    await page.mouse.move(place.x + 400, place.y + 30, { steps: 3 });
    await page.mouse.up();
    seen.dragged = (await drawn(page)).range;
    await page.keyboard.press('0');
    await canvas.focus();
    await page.keyboard.press('ArrowDown');
    seen.first = await tip(page);
    await page.keyboard.press('n');
    seen.next = await tip(page);
    await page.keyboard.press('Escape');
    seen.left = await tip(page);
    seen.orders = {};
    for (const order of await page.$$eval('select option', (all) => all.map((one) => one.value))) {
      await page.selectOption('select', order);
      seen.orders[order] = (await drawn(page)).flame;
    }
    await page.selectOption('select', 'prefix');
    await frames(page);
    const flame = await page.locator('.flame canvas').boundingBox();
    await page.mouse.click(flame.x + 10, flame.y + 30);
    seen.clicked = (await drawn(page)).flame;
    await page.keyboard.press('Escape');
    seen.unclicked = (await drawn(page)).flame;
    await page.keyboard.press('t');
    await frames(page);
    seen.theme = await page.evaluate(() => document.documentElement.dataset.theme);
    await page.setViewportSize({ width: 390, height: 844 });
    await frames(page);
    seen.fits = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  }
  await page.context().close();
  // The policy of the report blocks scripts such as the accessibility checker, so it is bypassed.
  const checked = await tab(b, { colorScheme, bypassCSP: true });
  await checked.goto(pathToFileURL(file).href);
  await until(checked, () => document.querySelector('main'));
  await checked.evaluate(axe);
  seen.violations = await checked.evaluate(async () => (await window.axe.run()).violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 2).join(' ')}`));
  await checked.context().close();
  return seen;
}

const all = {};
for (const [i, file] of process.argv.slice(2).entries()) all[file] = await look(file, i % 2 ? 'dark' : 'light');
await endAll();
process.stdout.write(JSON.stringify(all));
