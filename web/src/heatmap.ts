// Nodes × time: a row for each node, a colour for each bucket. More rows than pixels are put together, the
// highest of each row of pixels shown, and the page says so.

import { drawTimeAxis } from './axis';
import { fit } from './chart';
import type { Shown } from './chart';
import { h, onBrush, prepare, say } from './dom';
import * as format from './format';
import { compareNatural, Line } from './lines';
import type { Range, View } from './model';
import { heatColours } from './theme';

export interface Row {
  host: string;
  t: number[];
  v: number[];
  mean: number;
  last: number;
}

const BOTTOM = 16;
const HEIGHT_MAX = 480;
const NAMES = 104;

export function rows(lines: Line[]): Row[] {
  return lines
    .filter((c) => c.tags.host !== undefined)
    .map((c) => {
      let sum = 0;
      let n = 0;
      let last = NaN;
      for (const v of c.mean)
        if (!Number.isNaN(v)) {
          sum += v;
          n++;
          last = v;
        }
      return { host: c.tags.host!, t: c.t, v: c.mean, mean: sum / n, last };
    });
}

export function sorted(all: Row[], by: View['heatSort']): Row[] {
  const means = all
    .map((r) => r.mean)
    .filter((m) => !Number.isNaN(m))
    .sort((a, b) => a - b);
  const median = means[means.length >> 1] ?? 0;
  const high = (v: number) => (Number.isNaN(v) ? -Infinity : v);
  const order: Record<View['heatSort'], (a: Row, b: Row) => number> = {
    name: (a, b) => compareNatural(a.host, b.host),
    mean: (a, b) => high(b.mean) - high(a.mean),
    last: (a, b) => high(b.last) - high(a.last),
    deviation: (a, b) => high(Math.abs(b.mean - median)) - high(Math.abs(a.mean - median)),
  };
  return [...all].sort((a, b) => order[by](a, b) || compareNatural(a.host, b.host));
}

// The colours' range: a few outliers do not take all of it from the rest.
export function colourRange(all: Row[]): [number, number] {
  const values: number[] = [];
  const total = all.reduce((n, r) => n + r.v.length, 0);
  const stride = Math.max(1, Math.floor(total / 20000));
  let at = 0;
  for (const r of all) for (const v of r.v) if (at++ % stride === 0 && !Number.isNaN(v)) values.push(v);
  if (!values.length) return [0, 1];
  values.sort((a, b) => a - b);
  const low = values[Math.floor(values.length * 0.005)]!;
  const high = values[Math.min(values.length - 1, Math.ceil(values.length * 0.995))]!;
  return high > low ? [low, high] : [low - 1, high + 1];
}

export class HeatMap {
  readonly element: HTMLElement;
  readonly canvas = h('canvas', { role: 'img', tabindex: '0', 'aria-label': 'nodes over time' });
  private readonly about = h('span', { class: 'about' });
  private readonly now = h('span', { class: 'now' });
  readonly picker = h('input', { type: 'text', list: 'metrics', 'aria-label': 'metric of the heat map', spellcheck: 'false' });
  readonly order = h('select', { 'aria-label': 'order of the nodes' });
  private readonly legend = h('canvas', { class: 'legend', 'aria-hidden': 'true' });
  rows: Row[] = [];
  unit = '';
  metric = '';
  intervalMs = 1000;
  private shownRange: Range = { from: 0, to: 1 };
  private rowHeight = 24;
  private perRow = 1;
  private colours: Uint32Array = new Uint32Array(0);
  private coloursDark: boolean | null = null;
  private at: { x: number; y: number } | null = null;

  constructor(events: {
    hover(t: number | null): void;
    zoom(range: Range): void;
    brush(range: Range | null): void;
    node(host: string): void;
    metric(name: string): void;
    sort(by: View['heatSort']): void;
  }) {
    for (const [value, text] of [
      ['name', 'by name'],
      ['mean', 'by mean'],
      ['last', 'by last value'],
      ['deviation', 'by distance from the median'],
    ] as const)
      this.order.append(h('option', { value }, text));
    this.element = h(
      'section',
      { class: 'heat', 'aria-label': 'nodes over time' },
      h('div', { class: 'bar' }, h('h2', {}, 'Nodes'), this.picker, this.order, this.legend, this.about, this.now),
      this.canvas,
    );
    this.picker.addEventListener('change', () => events.metric(this.picker.value.trim()));
    this.order.addEventListener('change', () => events.sort(this.order.value as View['heatSort']));
    this.canvas.addEventListener('pointermove', (e) => {
      this.at = { x: e.offsetX, y: e.offsetY };
      events.hover(this.timeAt(e.offsetX));
    });
    this.canvas.addEventListener('pointerleave', () => {
      this.at = null;
      events.hover(null);
    });
    onBrush(
      this.canvas,
      (a, b) => events.brush({ from: this.timeAt(a), to: this.timeAt(b) }),
      (a, b) => events.zoom({ from: this.timeAt(a), to: this.timeAt(b) }),
      (_x, y) => {
        events.brush(null);
        const row = this.rowAt(y);
        if (row) events.node(row.host);
      },
    );
  }

  pixels(): number {
    return Math.max(100, (this.element.clientWidth || 600) - NAMES);
  }

  // Where rows are too low for names, they reach to the edge.
  private plotWidth(): number {
    return Math.max(40, this.element.clientWidth - (this.rowHeight >= 11 ? NAMES : 0));
  }

  private timeAt(x: number): number {
    const { from, to } = this.shownRange;
    return from + Math.min(1, Math.max(0, x / this.plotWidth())) * (to - from);
  }

  private rowAt(y: number): Row | undefined {
    return this.rows[Math.floor(y / this.rowHeight) * this.perRow];
  }

  draw(shown: Shown): void {
    const width = this.element.clientWidth;
    if (!width || this.element.hidden) return;
    this.shownRange = shown.range;
    const { theme, range } = shown;
    this.rowHeight = Math.max(1, Math.min(24, Math.floor(HEIGHT_MAX / Math.max(1, this.rows.length))));
    const plot = this.plotWidth();
    this.perRow = Math.max(1, Math.ceil(this.rows.length / HEIGHT_MAX));
    const height = Math.ceil(this.rows.length / this.perRow) * this.rowHeight;
    const c = prepare(this.canvas, width, height + BOTTOM);
    this.canvas.style.height = `${height + BOTTOM}px`;
    if (this.coloursDark !== theme.dark) {
      this.colours = heatColours(theme.dark);
      this.coloursDark = theme.dark;
    }
    const [low, high] = colourRange(this.rows);
    this.paint(c, range, Math.round(plot), height, low, high);
    c.font = theme.font;
    c.fillStyle = theme.quiet;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    if (this.rowHeight >= 11)
      this.rows.forEach((row, i) => {
        c.fillStyle = shown.findings.some((f) => f.host === row.host) ? theme.alarm : theme.quiet;
        c.fillText(fit(c, row.host, NAMES - 10), plot + 6, (i + 0.5) * this.rowHeight);
      });
    drawTimeAxis(c, theme, range, shown.origin, plot, height + 13);
    const x = (t: number) => ((t - range.from) / (range.to - range.from)) * plot;
    c.fillStyle = theme.alarm;
    for (const f of shown.findings) {
      const row = f.host === undefined ? -1 : this.rows.findIndex((r) => r.host === f.host);
      if (row < 0 || x(f.to) < 0 || x(f.from) > plot) continue;
      const top = Math.floor(row / this.perRow) * this.rowHeight;
      const from = Math.max(0, x(f.from));
      c.fillRect(from, top, Math.max(3, Math.min(plot, x(f.to)) - from), Math.min(3, this.rowHeight));
    }
    if (shown.brush) {
      c.globalAlpha = 0.3;
      c.fillStyle = theme.accent;
      c.fillRect(x(shown.brush.from), 0, x(shown.brush.to) - x(shown.brush.from), height);
      c.globalAlpha = 1;
    }
    if (shown.hover !== null && x(shown.hover) <= plot) {
      c.fillStyle = theme.text;
      c.fillRect(x(shown.hover), 0, 1, height);
    }
    this.caption(low, high);
  }

  private paint(c: CanvasRenderingContext2D, range: Range, plot: number, height: number, low: number, high: number): void {
    if (!height || !plot) return;
    const lines = Math.ceil(this.rows.length / this.perRow);
    const image = new ImageData(plot, lines);
    const pixels = new Uint32Array(image.data.buffer);
    const perMs = plot / (range.to - range.from);
    const best = new Float64Array(plot);
    for (let line = 0; line < lines; line++) {
      best.fill(NaN);
      for (let i = line * this.perRow; i < Math.min(this.rows.length, (line + 1) * this.perRow); i++) {
        const row = this.rows[i]!;
        for (let k = 0; k < row.t.length; k++) {
          const v = row.v[k]!;
          if (Number.isNaN(v)) continue;
          // A bucket reaches to the next, but not over a gap.
          const next = row.t[k + 1] ?? Infinity;
          const end = Math.min(next, row.t[k]! + this.intervalMs * 2.5);
          const from = Math.max(0, Math.floor((row.t[k]! - range.from) * perMs));
          const to = Math.min(plot, Math.max(from + 1, Math.floor((end - range.from) * perMs)));
          for (let px = from; px < to; px++) if (!(best[px]! >= v)) best[px] = v;
        }
      }
      for (let px = 0; px < plot; px++) {
        const v = best[px]!;
        if (Number.isNaN(v)) continue;
        const colour = Math.min(255, Math.max(0, Math.round(((v - low) / (high - low)) * 255)));
        pixels[line * plot + px] = this.colours[colour]!;
      }
    }
    const part = document.createElement('canvas');
    part.width = plot;
    part.height = lines;
    part.getContext('2d')!.putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(part, 0, 0, plot, height);
    const legend = prepare(this.legend, 120, 10);
    for (let i = 0; i < 120; i++) {
      const colour = this.colours[Math.floor((i / 119) * 255)]!;
      legend.fillStyle = `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
      legend.fillRect(i, 0, 1, 10);
    }
  }

  private caption(low: number, high: number): void {
    const binned = this.perRow > 1 ? ` · ${this.perRow} nodes a row, the highest shown` : '';
    say(this.about, this.rows.length ? `${format.value(low, this.unit)} – ${format.value(high, this.unit)}${binned}` : 'no values');
    const row = this.at ? this.rowAt(this.at.y) : undefined;
    let text = '';
    if (row && this.at) {
      const t = this.timeAt(this.at.x);
      let k = row.t.length - 1;
      while (k >= 0 && row.t[k]! > t) k--;
      const v = k >= 0 && t - row.t[k]! <= this.intervalMs * 2.5 ? row.v[k] : NaN;
      text = `${row.host}  ${format.value(v, this.unit)}`;
    }
    say(this.now, text);
    const top = sorted(this.rows, 'deviation')[0];
    this.canvas.setAttribute(
      'aria-label',
      top
        ? `${this.metric} of ${this.rows.length} nodes over time; farthest from the median: ${top.host}, mean ${format.value(top.mean, this.unit)}`
        : `${this.metric}: no values`,
    );
  }
}
