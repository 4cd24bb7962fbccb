// Starts servers, recordings and a browser for the tests of the page.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

const packages = process.env.WEB_TEST_PACKAGES;
export const built = existsSync(path.join(process.env.PAGE_PACKAGES ?? '', 'node_modules/esbuild'));
const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => existsSync(p));

// Ends the program as skipped if one of its requirements is missing.
export function need(...what) {
  const missing = {
    page: !built && 'the page was built without esbuild',
    packages: !existsSync(path.join(packages, 'node_modules/playwright-core')) && 'no packages of tests/web',
    chromium: !chromium && 'no Chromium',
  };
  for (const name of what)
    if (missing[name]) {
      console.log(`skipped: ${missing[name]}`);
      process.exit(77);
    }
}

export const require = createRequire(path.join(packages, 'package.json'));
export const TOKEN = 'a-token-of-the-page-test';
// These limits only end what hangs, so they are ample: other work may slow the tests.
export const WAITS_MS = 120000;
export const HANGS = { timeout: 300000 };
const ended = [];

export function atEnd(work) {
  ended.push(work);
}

export async function endAll() {
  for (const work of ended.splice(0).reverse()) await work();
}

export function folder() {
  const made = mkdtempSync(path.join(os.tmpdir(), 'sonde-web-'));
  atEnd(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

// Starts a process. The harness waits for its end.
export function start(program, args, options = {}) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
  const gone = new Promise((resolve) => child.on('exit', resolve));
  child.stdin.on('error', () => undefined);
  atEnd(async () => {
    child.stdin.end();
    child.kill('SIGTERM');
    await gone;
  });
  return { child, gone, lines: readline.createInterface({ input: child.stdout }) };
}

// A port that no other job takes after the end of ours: `sonde run` takes the first free one from
// 4242 on.
export async function rarePort() {
  const server = http.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// Waits for a line of standard error that matches the pattern.
export async function said(child, pattern) {
  let text = '';
  for await (const part of child.stderr) {
    text += part;
    const found = text.match(pattern);
    if (found) {
      child.stderr.resume();
      return found;
    }
  }
  throw new Error(`the process ended without printing ${pattern}: ${text}`);
}

// Writes a recording with tests/conformance/make_store: points, metrics, spans, annotations.
export async function record(file, job, host, write) {
  const { child, gone } = start(process.env.SONDE_MAKE_STORE, [file, job, host]);
  const tags = (t) => Object.entries(t).map(([k, v]) => `${k}=${v}`).join(',') || '-';
  const ns = (ms) => `${BigInt(Math.round(ms * 1000)) * 1000n}`;
  const say = (line) => child.stdin.write(line + '\n');
  write({
    metric: (name, kind, unit, help) => say(`metric ${name} ${kind} ${unit || '-'} ${help}`),
    point: (metric, t, ms, value) => say(`point ${metric} ${tags(t)} ${ns(ms)} ${value}`),
    span: (id, parent, from, to, t, name) => say(`span ${id} ${parent} ${ns(from)} ${to === null ? '-' : ns(to)} ${tags(t)} ${name}`),
    annotation: (ms, t, text) => say(`annotation ${ns(ms)} ${tags(t)} ${text}`),
  });
  child.stdin.end();
  if ((await gone) !== 0) throw new Error('make_store failed');
}

export async function serve(paths, options = []) {
  const { child, gone, lines } = start(process.env.SONDE_SERVE, [`token=${TOKEN}`, ...options, '--', ...paths]);
  child.stderr.resume();
  const [word, port] = await Promise.race([
    new Promise((resolve) => lines.once('line', (line) => resolve(line.split(' ')))),
    gone.then((code) => ['it ended with', code]),
  ]);
  if (word !== 'ready') throw new Error(`serve: ${word} ${port}`);
  return {
    url: `http://127.0.0.1:${port}/`,
    port: Number(port),
    lines, // what the server says to its launcher
    stop: async () => {
      child.stdin.end();
      child.kill('SIGTERM');
      await gone;
    },
  };
}

export async function ask(url, pathname, token, body) {
  const response = await fetch(new URL(pathname, url), {
    method: body ? 'POST' : 'GET',
    headers: { Authorization: `Bearer ${token}` },
    body: body && JSON.stringify(body),
  });
  return response.json();
}

// A certificate that no browser trusts, for a server of a test.
function certificate() {
  const made = folder();
  const [key, cert] = [path.join(made, 'key'), path.join(made, 'cert')];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1', '-subj', '/CN=127.0.0.1', '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

// Starts a proxy that serves the server below a path, like a notebook server. The proxy can be
// closed and reopened. It can also accept requests without answering them, and answer them later,
// and answer with its own login page.
//
// With `portal`, the proxy does what portals of clusters do (Open OnDemand): browsers reach it over
// HTTPS, the server sees the proxy's own Host, and Authorization belongs to the portal.
export async function proxy(port, prefix, portal = false) {
  const sockets = new Set();
  let held = null; // requests that wait for an answer; null if requests are answered at once
  let stallAt = null; // stalls at the first request whose path contains this
  let loggedOut = false;
  const handle = (request, response) => {
    if (loggedOut) {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>Log in</title>');
      return;
    }
    if (stallAt && request.url.includes(stallAt)) {
      stallAt = null;
      held ??= [];
    }
    if (held) {
      held.push({ path: request.url, answer: () => handle(request, response) });
      return;
    }
    if (!request.url.startsWith(prefix)) {
      response.writeHead(404).end();
      return;
    }
    const target = '/' + request.url.slice(prefix.length);
    const headers = { ...request.headers };
    if (portal) {
      headers.host = `127.0.0.1:${port}`;
      delete headers.authorization;
      headers['x-forwarded-for'] = '127.0.0.1';
    }
    const onward = http.request({ port, host: '127.0.0.1', method: request.method, path: target, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
      answer.on('error', () => response.destroy()); // the server closed the connection too early
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  };
  let server;
  let own = 0;
  const open = () =>
    new Promise((resolve) => {
      server = portal ? https.createServer(certificate(), handle) : http.createServer(handle);
      server.on('connection', (s) => {
        sockets.add(s);
        s.on('close', () => sockets.delete(s));
      });
      server.listen(own, '127.0.0.1', () => {
        own = server.address().port;
        resolve();
      });
    });
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      for (const s of sockets) s.destroy();
    });
  await open();
  atEnd(close);
  const stall = () => (held = []);
  const stallWith = (path) => (stallAt = path);
  const waiting = () => (held ?? []).map((r) => r.path);
  const goOn = () => {
    const all = held;
    held = null;
    for (const r of all) r.answer();
  };
  const logOut = (out) => (loggedOut = out);
  return { url: `${portal ? 'https' : 'http'}://127.0.0.1:${own}${prefix}`, open, close, stall, stallWith, waiting, goOn, logOut };
}

export async function browser() {
  const { chromium: driver } = require('playwright-core');
  const b = await driver.launch({ executablePath: chromium, timeout: WAITS_MS, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  atEnd(() => b.close());
  return b;
}

// Opens a page in its own browser context, and collects its console messages in page.said.
export async function tab(b, options = {}) {
  const context = await b.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(WAITS_MS);
  page.said = [];
  page.on('console', (m) => page.said.push(`${m.type()}: ${m.text()}`));
  page.on('pageerror', (e) => page.said.push(`error: ${e.stack}`));
  return page;
}

export const drawn = (page) => page.evaluate(() => window.sonde.drawn());

// Waits until `test`, a function that runs in the page, returns true. The error of a failed wait
// tells the state of the page.
export async function until(page, test, argument) {
  await page.waitForFunction(test, argument, { polling: 100 }).catch(async (error) => {
    const state = await page.evaluate(() => JSON.stringify([location.href, { ...document.documentElement.dataset }, document.querySelector('.banner')?.innerText])).catch((e) => e.message);
    throw new Error(`${error.message} ${test}: ${state}; messages: ${JSON.stringify(page.said)}`);
  });
}
