// Reads cases from standard input, a JSON object per line, and prints Grafana's result for each.
//
//   drive MODULE    module.js of an installed plugin, or "-"
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';
import { install, look, SETTINGS } from './frontend.mjs';
import { modules } from './modules.mjs';
import { DataSource as StandIn } from './source.mjs';

/** Loads an installed plugin, which is an AMD module: define([names], factory). */
function plugin(path) {
  let made;
  const define = (names, factory) => {
    const exports = {};
    const given = names.map((name) =>
      name === 'exports' ? exports : name === 'module' ? { uri: path } : modules[name],
    );
    made = factory(...given) ?? exports;
  };
  define.amd = true;
  new Function('define', readFileSync(path, 'utf8'))(define);
  return made.plugin.DataSourceClass;
}

const [path] = process.argv.slice(2);
const to = install(SETTINGS, path === '-' ? StandIn : plugin(path));
for await (const line of createInterface({ input: process.stdin })) {
  const { base, dashboard, range, width, chosen } = JSON.parse(line);
  to.base = base;
  let answer;
  try {
    answer = await look(dashboard, range, width, chosen);
  } catch (error) {
    answer = { failed: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
