// The data of a Dask cluster's report, and the shapes to draw: lanes of worker threads, bins of
// tasks that are narrower than a pixel, the tree of the time spent. sonde.dask (_report.py) writes
// the data.

import { compareNatural } from './lines';
import type { Range } from './model';

export interface Row {
  prefix: string;
  count: number;
  seconds: number;
  mean: number | null;
  p95: number | null;
  nbytes: number | null;
  errors: number;
  unfinished: number;
}

// Times are microseconds since `origin_ms`, which is milliseconds since the epoch.
export interface Packed {
  title: string;
  cluster: string;
  origin_ms: number;
  periods: [number, number][]; // periods of recording
  workers: { worker: number; name: string; host: string }[];
  at: [number, number, number][]; // start, job and dag of the cluster
  prefixes: Row[];
  tasks: {
    start: number[]; // since the previous task
    duration: number[];
    worker: number[]; // number of the worker
    prefix: number[]; // index in `prefixes`
    key: string[];
    nbytes: (number | null)[];
    state: number[];
  };
  inner: { task: number[]; parent: number[]; name: string[]; start: number[]; duration: number[]; tags: Record<string, string>[] };
}

export const FAILED = 1;
export const UNFINISHED = 2;

// Times of all tasks, in milliseconds since the epoch.
export interface Times {
  from: Float64Array;
  to: Float64Array;
}

export function timesOf(data: Packed): Times {
  const { start, duration } = data.tasks;
  const from = new Float64Array(start.length);
  const to = new Float64Array(start.length);
  let at = 0;
  start.forEach((step, i) => {
    at += step;
    from[i] = data.origin_ms + at / 1000;
    to[i] = data.origin_ms + (at + duration[i]!) / 1000;
  });
  return { from, to };
}

export interface Lane {
  worker: number;
  first: boolean; // of its worker
  tasks: number[]; // in the order of their times, without overlap
}

// A lane for each thread of a worker: a task takes the first lane that is free at its start.
export function lanes(data: Packed, times: Times): Lane[] {
  const by = new Map<number, number[][]>(data.workers.map((w) => [w.worker, []]));
  data.tasks.worker.forEach((worker, i) => {
    const mine = by.get(worker)!;
    const free = mine.find((tasks) => times.to[tasks[tasks.length - 1]!]! <= times.from[i]!);
    if (free) free.push(i);
    else mine.push([i]);
  });
  return data.workers
    .slice()
    .sort((a, b) => compareNatural(a.name, b.name) || a.worker - b.worker)
    .flatMap((w) => {
      const mine = by.get(w.worker)!;
      return (mine.length ? mine : [[]]).map((tasks, i) => ({ worker: w.worker, first: i === 0, tasks }));
    });
}

export interface Box {
  task: number;
  x: number;
  w: number;
}

// Tasks in one pixel, each narrower than the pixel.
export interface Bin {
  x: number;
  tasks: number[];
  busy: number; // the share of the pixel that they fill
  prefix: number; // the one with the most time
}

export function layout(lane: Lane, times: Times, prefixes: number[], range: Range, width: number): { boxes: Box[]; bins: Bin[] } {
  const boxes: Box[] = [];
  const bins: Bin[] = [];
  const scale = width / (range.to - range.from);
  let open = null as { bin: Bin; of: Map<number, number> } | null;
  let low = 0;
  for (let high = lane.tasks.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (times.to[lane.tasks[middle]!]! < range.from) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < lane.tasks.length && times.from[lane.tasks[i]!]! <= range.to; i++) {
    const task = lane.tasks[i]!;
    const x = (times.from[task]! - range.from) * scale;
    const w = (times.to[task]! - times.from[task]!) * scale;
    if (w >= 1) {
      boxes.push({ task, x, w });
      continue;
    }
    const pixel = Math.floor(x);
    if (open?.bin.x !== pixel) {
      open = { bin: { x: pixel, tasks: [], busy: 0, prefix: 0 }, of: new Map() };
      bins.push(open.bin);
    }
    const prefix = prefixes[task]!;
    open.bin.tasks.push(task);
    open.bin.busy = Math.min(1, open.bin.busy + w);
    open.of.set(prefix, (open.of.get(prefix) ?? 0) + w);
    open.bin.prefix = [...open.of].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
  }
  return { boxes, bins };
}

// A part of the range with the same job and dag.
export interface Stretch extends Range {
  job: number;
  dag: number;
}

export function stretches(data: Packed): Stretch[] {
  const end = data.origin_ms + (data.periods[data.periods.length - 1]?.[1] ?? 0) / 1000;
  return data.at.map(([t, job, dag], i) => ({
    from: data.origin_ms + t / 1000,
    to: i + 1 < data.at.length ? data.origin_ms + data.at[i + 1]![0] / 1000 : end,
    job,
    dag,
  }));
}

// The last one that begins at or before t; all are in order.
export function stretchAt(all: Stretch[], t: number): Stretch | undefined {
  let low = 0;
  for (let high = all.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (all[middle]!.from <= t) low = middle + 1;
    else high = middle;
  }
  return all[low - 1];
}

export const ORDERS = ['prefix', 'worker › prefix', 'job › prefix', 'prefix › key'] as const;
export type Order = (typeof ORDERS)[number];

export interface Node {
  name: string;
  prefix: number; // -1: several
  ms: number;
  count: number;
  children: Map<string, Node>;
}

function child(node: Node, name: string, prefix: number): Node {
  let found = node.children.get(name);
  if (!found) node.children.set(name, (found = { name, prefix, ms: 0, count: 0, children: new Map() }));
  return found;
}

// The time spent in this range: all threads' tasks in this order, and their own spans within them.
export function tree(data: Packed, times: Times, all: Stretch[], range: Range, order: Order): Node {
  const root: Node = { name: 'all tasks', prefix: -1, ms: 0, count: 0, children: new Map() };
  const names = new Map(data.workers.map((w) => [w.worker, w.name]));
  const within = (from: number, to: number) => Math.max(0, Math.min(to, range.to) - Math.max(from, range.from));
  const leaves = new Map<number, Node>();
  const { prefix, key, worker } = data.tasks;
  for (let i = 0; i < key.length; i++) {
    if (times.to[i]! < range.from || times.from[i]! > range.to) continue;
    const ms = within(times.from[i]!, times.to[i]!);
    const p = prefix[i]!;
    const path: [string, number][] = [[data.prefixes[p]!.prefix, p]];
    if (order === 'worker › prefix') path.unshift([`worker ${names.get(worker[i]!)}`, -1]);
    else if (order === 'job › prefix') path.unshift([`job ${stretchAt(all, times.from[i]!)?.job ?? '–'}`, -1]);
    else if (order === 'prefix › key') path.push([key[i]!, p]);
    let node = root;
    root.ms += ms;
    root.count++;
    for (const [name, of] of path) {
      node = child(node, name, of);
      node.ms += ms;
      node.count++;
    }
    leaves.set(i, node);
  }
  const nodes: (Node | undefined)[] = [];
  const inner = data.inner;
  for (let i = 0; i < inner.task.length; i++) {
    const task = inner.task[i]!;
    const parent = inner.parent[i]! < 0 ? leaves.get(task) : nodes[inner.parent[i]!];
    if (!parent) continue;
    const from = times.from[task]! + inner.start[i]! / 1000;
    const node = child(parent, inner.name[i]!, prefix[task]!);
    node.ms += within(from, from + inner.duration[i]! / 1000);
    node.count++;
    nodes[i] = node;
  }
  return root;
}

export interface Piece {
  node: Node;
  path: Node[]; // from the root to the parent
  depth: number;
  x: number; // 0…1 of the width
  w: number;
  more: number; // number of siblings that are narrower than a pixel; 0: a node of its own
}

// The rectangles of a tree, level by level, the largest first. Siblings narrower than `least` are
// one rectangle.
export function pieces(root: Node, above: Node[], least: number): Piece[] {
  const found: Piece[] = [];
  const place = (node: Node, path: Node[], depth: number, x: number, w: number) => {
    found.push({ node, path, depth, x, w, more: 0 });
    const children = [...node.children.values()].sort((a, b) => b.ms - a.ms || compareNatural(a.name, b.name));
    const sum = children.reduce((s, c) => s + c.ms, 0);
    // spans of several threads may exceed the task's time
    const scale = sum > 0 ? w / Math.max(node.ms, sum) : 0;
    let at = x;
    for (let i = 0; i < children.length; i++) {
      const c = children[i]!;
      if (c.ms * scale < least) {
        const rest = children.slice(i);
        const ms = rest.reduce((s, r) => s + r.ms, 0);
        const all: Node = { name: `${rest.length} more`, prefix: -1, ms, count: rest.reduce((s, r) => s + r.count, 0), children: new Map() };
        if (rest.length === 1) all.name = c.name;
        found.push({ node: all, path: [...path, node], depth: depth + 1, x: at, w: ms * scale, more: rest.length });
        break;
      }
      place(c, [...path, node], depth + 1, at, c.ms * scale);
      at += c.ms * scale;
    }
  };
  place(root, above, above.length, 0, 1);
  return [...above.map((node, depth) => ({ node, path: above.slice(0, depth), depth, x: 0, w: 1, more: 0 })), ...found];
}
