// Spans as swim lanes, one group for each process (or rank, or node), nested by time; and a table
// of their names.

import type { Span } from './source';
import { drawTimeAxis } from './axis';
import { fit } from './chart';
import type { Shown } from './chart';
import { h, onBrush, prepare, say } from './dom';
import * as format from './format';
import { compareNatural } from './lines';
import type { Range } from './model';

export const SPANS_MAX = 5000; // maximum number in a request

export interface Placed {
  span: Span;
  from: number; // milliseconds
  to: number; // of an open span: now
  open: boolean;
  lane: string;
  depth: number;
}

export interface Lane {
  name: string;
  spans: Placed[];
  depth: number; // rows
}

function laneOf(span: Span): string {
  for (const key of ['rank', 'worker', 'pid', 'thread'])
    if (span.tags[key] !== undefined) return `${span.node ? span.node + ' ' : ''}${key} ${span.tags[key]}`;
  return span.tags.host ?? span.node ?? '';
}

// Each span gets the first free row of its lane or, if it lies within another one, a row below
// that.
export function lanes(spans: Span[], nowMs: number): Lane[] {
  const all = new Map<string, Placed[]>();
  const ordered = spans
    .map((span) => ({
      span,
      from: span.start_ns / 1e6,
      to: span.end_ns === undefined ? nowMs : span.end_ns / 1e6,
      open: span.end_ns === undefined,
      lane: laneOf(span),
      depth: 0,
    }))
    .sort((a, b) => a.from - b.from || b.to - a.to);
  for (const p of ordered) {
    const lane = all.get(p.lane) ?? [];
    all.set(p.lane, lane);
    lane.push(p);
  }
  return [...all]
    .sort(([a], [b]) => compareNatural(a, b))
    .map(([name, placed]) => {
      const ends: number[] = []; // of each row
      for (const p of placed) {
        while (ends.length && ends[ends.length - 1]! <= p.from) ends.pop();
        p.depth = ends.length;
        ends.push(p.to);
      }
      return { name, spans: placed, depth: Math.max(...placed.map((p) => p.depth)) + 1 };
    });
}

export interface Summary {
  name: string;
  count: number;
  open: number;
  mean: number; // seconds
  p95: number;
  max: number;
  share: number; // of the range, for an average lane
  imbalance: number; // the largest sum of a lane divided by the mean of all lanes; 1: even
}

export function summaries(all: Lane[], range: Range): Summary[] {
  const by = new Map<string, { times: number[]; open: number; lanes: Map<string, number> }>();
  for (const lane of all)
    for (const p of lane.spans) {
      const entry = by.get(p.span.name) ?? { times: [], open: 0, lanes: new Map<string, number>() };
      by.set(p.span.name, entry);
      if (p.open) entry.open++;
      else entry.times.push((p.to - p.from) / 1000);
      const inside = Math.max(0, Math.min(p.to, range.to) - Math.max(p.from, range.from)) / 1000;
      entry.lanes.set(lane.name, (entry.lanes.get(lane.name) ?? 0) + inside);
    }
  const seconds = (range.to - range.from) / 1000;
  return [...by]
    .map(([name, e]) => {
      e.times.sort((a, b) => a - b);
      const n = e.times.length;
      const sums = [...e.lanes.values()];
      const mean = sums.reduce((a, b) => a + b, 0) / sums.length;
      return {
        name,
        count: n + e.open,
        open: e.open,
        mean: n ? e.times.reduce((a, b) => a + b, 0) / n : NaN,
        p95: n ? e.times[Math.min(n - 1, Math.ceil(n * 0.95) - 1)]! : NaN,
        max: n ? e.times[n - 1]! : NaN,
        share: mean / seconds,
        imbalance: mean > 0 ? Math.max(...sums) / mean : 1,
      };
    })
    .sort((a, b) => b.share - a.share || compareNatural(a.name, b.name));
}

const ROW = 16;
const NAME = 14; // the lane's heading
const BOTTOM = 16;
const HEIGHT_MAX = 420;

export class Spans {
  readonly element: HTMLElement;
  readonly canvas = h('canvas', { role: 'img', tabindex: '0', 'aria-label': 'spans' });
  private readonly about = h('span', { class: 'about' });
  private readonly now = h('span', { class: 'now' });
  private readonly body = h('tbody');
  private readonly scroll: HTMLElement;
  all: Lane[] = [];
  total = 0;
  private shownRange: Range = { from: 0, to: 1 };
  private boxes: { p: Placed; x: number; y: number; w: number }[] = [];
  private chosen: Placed | null = null; // with the keyboard
  private tableOf = '';

  constructor(events: { hover(t: number | null): void; brush(r: Range | null): void; zoom(r: Range): void; span(p: Placed): void }) {
    this.scroll = h('div', { class: 'lanes' }, this.canvas);
    const heads = ['name', 'count', 'mean', 'p95', 'max', 'share', 'imbalance'];
    this.element = h(
      'section',
      { class: 'spans', id: 'spans', 'aria-label': 'spans' },
      h('div', { class: 'bar' }, h('h2', {}, 'Spans'), this.about, this.now),
      this.scroll,
      h('table', {}, h('thead', {}, h('tr', {}, ...heads.map((t) => h('th', { scope: 'col' }, t)))), this.body),
    );
    this.canvas.addEventListener('pointermove', (e) => {
      events.hover(this.timeAt(e.offsetX));
      const p = this.boxAt(e.offsetX, e.offsetY);
      say(this.now, p ? describe(p) : '');
    });
    this.canvas.addEventListener('pointerleave', () => {
      say(this.now, '');
      events.hover(null);
    });
    this.canvas.addEventListener('keydown', (e) => this.key(e, events));
    this.canvas.addEventListener('blur', () => this.choose(null, events));
    onBrush(
      this.canvas,
      (a, b) => events.brush({ from: this.timeAt(a), to: this.timeAt(b) }),
      (a, b) => events.zoom({ from: this.timeAt(a), to: this.timeAt(b) }),
      (x, y) => {
        events.brush(null);
        const p = this.boxAt(x, y);
        if (p) events.span(p);
      },
    );
  }

  // Left and right: the next span; up and down: the first one of another lane.
  private key(e: KeyboardEvent, events: { hover(t: number | null): void; span(p: Placed): void }): void {
    const seen = this.boxes.map((b) => b.p);
    const at = this.chosen ? seen.findIndex((p) => p.span === this.chosen!.span) : -1;
    const lanes = [...new Set(seen.map((p) => p.lane))];
    const lane = lanes.indexOf(seen[at]?.lane ?? '');
    const firstOf = (i: number) => seen.findIndex((p) => p.lane === lanes[Math.min(lanes.length - 1, Math.max(0, i))]);
    const moves: Record<string, () => number> = {
      ArrowRight: () => at + 1,
      ArrowLeft: () => at - 1,
      ArrowDown: () => firstOf(lane + 1),
      ArrowUp: () => firstOf(lane - 1),
    };
    if (e.key === 'Enter' && this.chosen) events.span(this.chosen);
    else if (moves[e.key] && seen.length) this.choose(seen[Math.min(seen.length - 1, Math.max(0, moves[e.key]!()))]!, events);
    else return;
    e.preventDefault();
  }

  private choose(p: Placed | null, events: { hover(t: number | null): void }): void {
    this.chosen = p;
    say(this.now, p ? describe(p) : '');
    events.hover(p ? p.from : null);
  }

  private timeAt(x: number): number {
    const { from, to } = this.shownRange;
    return from + (x / Math.max(1, this.canvas.clientWidth)) * (to - from);
  }

  private boxAt(x: number, y: number): Placed | undefined {
    for (let i = this.boxes.length - 1; i >= 0; i--) {
      const b = this.boxes[i]!;
      if (x >= b.x - 1 && x <= b.x + Math.max(3, b.w) && y >= b.y && y < b.y + ROW) return b.p;
    }
    return undefined;
  }

  setSpans(spans: Span[], nowMs: number, range: Range): void {
    this.all = lanes(spans, nowMs);
    this.total = spans.length;
    say(this.about, spans.length >= SPANS_MAX ? `the first ${SPANS_MAX} of this range` : `${spans.length} in this range`);
    this.canvas.setAttribute('aria-label', `${spans.length} spans in ${this.all.length} lanes; the table below sums them up`);
    this.table(range);
  }

  private table(range: Range): void {
    const list = summaries(this.all, range).slice(0, 50);
    const text = JSON.stringify(list);
    if (text === this.tableOf) return;
    this.tableOf = text;
    const seconds = (s: number) => (Number.isNaN(s) ? format.MISSING : format.duration(s));
    this.body.replaceChildren(
      ...list.map((s) =>
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, s.name),
          ...[
            format.count(s.count) + (s.open ? ` (${s.open} open)` : ''),
            seconds(s.mean),
            seconds(s.p95),
            seconds(s.max),
            format.value(s.share * 100, 'percent'),
            `${format.value(s.imbalance, '')}×`,
          ].map((t) => h('td', {}, t)),
        ),
      ),
    );
  }

  pixels(): number {
    return this.scroll.clientWidth;
  }

  draw(shown: Shown): boolean {
    const width = this.scroll.clientWidth;
    if (!width || this.element.hidden) return false;
    this.shownRange = shown.range;
    const { theme, range } = shown;
    const height = this.all.reduce((sum, l) => sum + NAME + l.depth * ROW + 4, 0) + BOTTOM;
    this.scroll.style.maxHeight = `${HEIGHT_MAX}px`;
    this.canvas.style.height = `${height}px`;
    const c = prepare(this.canvas, width, Math.min(height, 16000));
    c.font = theme.font;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    const x = (t: number) => ((t - range.from) / (range.to - range.from)) * width;
    const names = [...new Set(this.all.flatMap((l) => l.spans.map((p) => p.span.name)))].sort(compareNatural);
    const colour = new Map(names.map((n, i) => [n, theme.series[i % theme.series.length]!]));
    this.boxes = [];
    let top = 0;
    for (const lane of this.all) {
      c.fillStyle = theme.quiet;
      c.fillText(lane.name, 2, top + NAME / 2);
      top += NAME;
      for (const p of lane.spans) {
        const a = Math.max(-2, x(p.from));
        const b = Math.min(width + 2, x(p.to));
        if (b < 0 || a > width) continue;
        const y = top + p.depth * ROW;
        const w = Math.max(1, b - a - (b - a > 3 ? 1 : 0));
        c.fillStyle = colour.get(p.span.name)!;
        c.globalAlpha = p.open ? 0.5 : 0.85;
        c.fillRect(a, y, w, ROW - 2);
        c.globalAlpha = 1;
        if (w > 28) {
          c.fillStyle = theme.ground;
          c.fillText(fit(c, title(p), w - 8), a + 4, y + ROW / 2 - 1);
        }
        if (this.chosen?.span === p.span) {
          c.strokeStyle = theme.text;
          c.lineWidth = 2;
          c.strokeRect(a + 1, y, Math.max(2, w - 2), ROW - 2);
        }
        this.boxes.push({ p, x: a, y, w });
      }
      top += lane.depth * ROW + 4;
    }
    drawTimeAxis(c, theme, range, shown.origin, width, top + 12);
    for (const area of [shown.selection, shown.brush]) {
      if (!area) continue;
      c.globalAlpha = 0.16;
      c.fillStyle = theme.accent;
      c.fillRect(x(area.from), 0, x(area.to) - x(area.from), top);
      c.globalAlpha = 1;
    }
    if (shown.hover !== null) {
      c.fillStyle = theme.text;
      c.fillRect(x(shown.hover), 0, 1, top);
    }
    return false;
  }
}

function title(p: Placed): string {
  const tags = Object.entries(p.span.tags)
    .filter(([k]) => !['host', 'rank', 'pid', 'thread', 'worker'].includes(k))
    .map(([, v]) => v);
  return [p.span.name, ...tags].join(' ');
}

function describe(p: Placed): string {
  const tags = Object.entries(p.span.tags)
    .map(([k, v]) => `${k}=${v}`)
    .join(' ');
  return `${p.span.name}  ${format.duration((p.to - p.from) / 1000)}${p.open ? ' so far' : ''}  ${tags}`;
}
