// The points of a chart: the server's answer, followed by points from the stream.

import type { Column } from './columns';

export interface Line {
  key: string;
  tags: Record<string, string>;
  t: number[]; // starts of buckets, milliseconds, ascending
  mean: number[];
  low: number[];
  high: number[];
  // the quartiles of a band, if they were requested
  lower?: number[];
  upper?: number[];
}

const VALUES = ['mean', 'low', 'high', 'lower', 'upper'] as const; // in the order of the questions

export function tagKey(tags: Record<string, string>): string {
  return Object.keys(tags)
    .sort()
    .map((k) => `${k}=${tags[k]}`)
    .join(',');
}

// A loop, because Array.from takes ten times as long for typed arrays.
function numbers(from: Float64Array): number[] {
  const all = new Array<number>(from.length);
  for (let i = 0; i < from.length; i++) all[i] = from[i]!;
  return all;
}

// Joins the answers of one plan: query 0 is the mean, 1 the minimum, 2 the maximum, 3 and 4 the
// quartiles. All have the same buckets, because they have the same points.
export function lines(columns: Column[]): Line[] {
  const by = new Map<string, Line>();
  for (const [query, name] of VALUES.entries())
    for (const c of columns) {
      if (c.query !== query) continue;
      const key = tagKey(c.tags);
      if (query === 0) {
        const mean = numbers(c.v);
        by.set(key, { key, tags: c.tags, t: numbers(c.t), mean, low: mean, high: mean });
        continue;
      }
      const line = by.get(key);
      if (line && c.t.length === line.t.length) line[name] = numbers(c.v);
    }
  for (const line of by.values()) {
    // Each gets an array of its own, because live buckets are added one by one.
    if (line.low === line.mean) line.low = line.mean.slice();
    if (line.high === line.mean) line.high = line.mean.slice();
  }
  return [...by.values()].sort((a, b) => compareNatural(a.key, b.key));
}

// Removes the last bucket if it is incomplete at `nowMs`, because its rate would be too low.
export function dropPartial(all: Line[], intervalMs: number, nowMs: number): Line[] {
  for (const line of all)
    while (line.t.length && line.t[line.t.length - 1]! + intervalMs > nowMs)
      for (const name of ['t', ...VALUES] as const) line[name]?.pop();
  return all;
}

// Sorts n2 before n10, and B between a and c. An Intl.Collator would do so, too, but takes up to
// 30 ms to create.
export function compareNatural(a: string, b: string): number {
  const x = a.toLowerCase();
  const y = b.toLowerCase();
  let i = 0;
  let j = 0;
  while (i < x.length && j < y.length) {
    const m = numberEnd(x, i);
    const n = numberEnd(y, j);
    let order = x.charCodeAt(i) - y.charCodeAt(j);
    if (m > i && n > j) order = Number(x.slice(i, m)) - Number(y.slice(j, n));
    if (order) return order;
    i = Math.max(m, i + 1);
    j = Math.max(n, j + 1);
  }
  return x.length - i - (y.length - j) || (a < b ? -1 : Number(a > b));
}

// The end of the number that begins at `at`; `at`: none begins there.
function numberEnd(text: string, at: number): number {
  while (at < text.length && text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57) at++;
  return at;
}

// Inserts a bucket in order: mostly at the end, or replacing the last one.
export function putBucket(line: Line, t: number, mean: number, low: number, high: number): void {
  let at = line.t.length;
  while (at > 0 && line.t[at - 1]! >= t) at--;
  const replace = line.t[at] === t ? 1 : 0;
  line.t.splice(at, replace, t);
  line.mean.splice(at, replace, mean);
  line.low.splice(at, replace, low);
  line.high.splice(at, replace, high);
}

// Replaces everything from `fromMs` on with `newer`, which begins there.
export function replaceTail(line: Line, newer: Line, fromMs: number): void {
  let at = line.t.length;
  while (at > 0 && line.t[at - 1]! >= fromMs) at--;
  if (!line.lower || !newer.lower) line.lower = newer.lower = undefined;
  if (!line.upper || !newer.upper) line.upper = newer.upper = undefined;
  for (const name of ['t', ...VALUES] as const) {
    const own = line[name];
    if (!own) continue;
    own.length = at;
    for (const x of newer[name]!) own.push(x);
  }
}

// Removes buckets before `fromMs`; returns their number.
export function forget(line: Line, fromMs: number): number {
  let n = 0;
  while (n < line.t.length && line.t[n]! < fromMs) n++;
  if (n) for (const name of ['t', ...VALUES] as const) line[name]?.splice(0, n);
  return n;
}

// The longest step between two buckets that does not count as a gap: three times the usual one.
export function gapMs(line: Line, intervalMs: number): number {
  const steps: number[] = [];
  const stride = Math.max(1, Math.floor(line.t.length / 64));
  for (let i = stride; i < line.t.length; i += stride) steps.push(line.t[i]! - line.t[i - 1]!);
  steps.sort((a, b) => a - b);
  return 3.5 * Math.max(intervalMs, steps[steps.length >> 1] ?? 0);
}

// The index of the bucket to show at time `t`: the last one that begins at or before it, unless a
// gap is in between.
export function indexAt(line: Line, t: number, gap: number): number {
  let low = 0;
  let high = line.t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (line.t[middle]! <= t) low = middle + 1;
    else high = middle;
  }
  return low > 0 && t - line.t[low - 1]! <= gap ? low - 1 : -1;
}

// Makes buckets of the stream's points, like the engine: for a gauge the mean, minimum and maximum,
// for a counter the change from the last value of the previous bucket. The first bucket of a
// counter gives only the initial value, so the stream has to begin a bucket earlier. A bucket of a
// counter appears when it is complete: before, its change would be divided by too much time.
export class Tail {
  private t = NaN;
  private sum = 0;
  private n = 0;
  private low = 0;
  private high = 0;
  private last = 0;
  private seed: { t: number; v: number } | null = null;

  constructor(
    private readonly intervalMs: number,
    private readonly counter: boolean,
  ) {}

  push(line: Line, tMs: number, value: number): void {
    const t = Math.floor(tMs / this.intervalMs) * this.intervalMs;
    if (t < this.t) return;
    if (t !== this.t) {
      if (this.n && this.counter) this.complete(line);
      this.t = t;
      this.sum = this.n = 0;
      this.low = Infinity;
      this.high = -Infinity;
    }
    this.sum += value;
    this.n++;
    this.low = Math.min(this.low, value);
    this.high = Math.max(this.high, value);
    this.last = value;
    if (!this.counter) putBucket(line, t, this.sum / this.n, this.low, this.high);
  }

  private complete(line: Line): void {
    if (this.seed && this.last >= this.seed.v) {
      const rate = ((this.last - this.seed.v) / (this.t - this.seed.t)) * 1000;
      putBucket(line, this.t, rate, rate, rate);
    }
    this.seed = { t: this.t, v: this.last };
  }
}

// The tag values that distinguish the lines of a chart.
export function labels(all: { tags: Record<string, string> }[]): string[] {
  const keys = [...new Set(all.flatMap((l) => Object.keys(l.tags)))];
  keys.sort((a, b) => Number(b === 'host') - Number(a === 'host') || compareNatural(a, b));
  const differing = keys.filter((k) => new Set(all.map((l) => l.tags[k])).size > 1);
  // With gpu shown, uuid adds no information.
  const needed = differing.filter((k) => k !== 'uuid' || !differing.includes('gpu'));
  return all.map((l) =>
    needed
      .filter((k) => l.tags[k] !== undefined)
      .map((k) => (/^\d+$/.test(l.tags[k]!) ? `${k} ${l.tags[k]}` : l.tags[k]))
      .join(' '),
  );
}
