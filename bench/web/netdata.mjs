// Netdata as a peer of the page: its own server and its own page, without its collectors in other
// languages, and with data in memory alone.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { folder, rarePort, start } from '../../tests/web/harness.mjs';

const PROGRAM = '/usr/sbin/netdata';
const UP_WITHIN_MS = 30000;

// Starts Netdata; null if it is not installed. It has collected for some seconds when this returns,
// so its page has points to draw.
export async function netdata() {
  if (!existsSync(PROGRAM)) return null;
  const own = folder();
  const port = await rarePort();
  const places = ['cache', 'lib', 'log'].map((name) => [name, path.join(own, name)]);
  for (const [, place] of places) mkdirSync(place);
  const file = path.join(own, 'netdata.conf');
  writeFileSync(
    file,
    [
      ...['[global]', 'run as user = root', '[directories]', ...places.map(([name, place]) => `${name} = ${place}`)],
      ...['[web]', `bind to = 127.0.0.1:${port}`, '[db]', 'mode = ram', '[plugins]', 'python.d = no', 'go.d = no', 'charts.d = no'],
      '',
    ].join('\n'),
  );
  const server = start(PROGRAM, ['-D', '-c', file]);
  server.child.stdout.resume();
  server.child.stderr.resume();
  const url = `http://127.0.0.1:${port}/`;
  await collected(url);
  const stop = async () => {
    server.child.kill('SIGTERM');
    await server.gone;
  };
  return { url, stop };
}

// Waits until the server has ten seconds of processor times.
async function collected(url) {
  for (const end = Date.now() + UP_WITHIN_MS; ; ) {
    const data = await fetch(`${url}api/v1/data?chart=system.cpu&after=-30&format=json`).then(
      (answer) => (answer.ok ? answer.json() : null),
      () => null,
    );
    if (data?.data.length >= 10) return;
    if (Date.now() > end) throw new Error('netdata has no data');
    await new Promise((go) => setTimeout(go, 200));
  }
}

// In Netdata's page: the time, once a chart has drawn something.
export const netdataLines = () => {
  const hasPixels = (canvas) => canvas.width > 0 && canvas.height > 0 && canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((x) => x);
  return [...document.querySelectorAll('canvas')].some(hasPixels) && performance.now();
};
