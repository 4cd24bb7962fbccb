// Nodes × time: a row for each node, a colour for each bucket. If it has more rows than pixels,
// several are combined: each row of pixels shows the highest value, and the page says so.

import { drawTimeAxis } from './axis';
import { fit } from './chart';
import type { Shown } from './chart';
import { h, onBrush, prepare, say } from './dom';
import * as format from './format';
import { restartOf } from './marks';
import { compareNatural, Line } from './lines';
import type { Range, View } from './model';
import { heatColours } from './theme';

export interface Row {
  host: string;
  t: number[];
  v: number[];
  mean: number;
  last: number;
  members?: Row[]; // of a group, whose name is in `host`
  open?: boolean; // … and the rows of its nodes are shown below it
}

// The row that shows a node: its own, or that of its closed group; -1: none does.
function rowOf(all: Row[], host: string): number {
  const own = all.findIndex((r) => r.host === host && !r.members);
  return own >= 0 ? own : all.findIndex((r) => r.members?.some((m) => m.host === host));
}

function label(row: Row): string {
  return row.members ? `${row.open ? '▾' : '▸'} ${row.host} · ${row.members.length}` : row.host;
}

const BOTTOM = 16;
const HEIGHT_MAX = 480;
const NAMES = 104;
const NAMED = 12; // rows of this height have names

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

// The colours' range, which a few outliers must not dominate.
export function colourRange(all: Row[]): [number, number] {
  const some: number[] = [];
  const total = all.reduce((n, r) => n + r.v.length, 0);
  const stride = Math.max(1, Math.floor(total / 20000));
  let at = 0;
  for (const r of all) for (const v of r.v) if (at++ % stride === 0 && !Number.isNaN(v)) some.push(v);
  if (!some.length) return [0, 1];
  const values = Float64Array.from(some).sort(); // typed arrays sort by value, without a function
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
  private readonly title = h('button', { type: 'button', class: 'title' }, 'Nodes');
  private readonly grouping = h('button', { type: 'button', title: 'groups of nodes by their names', hidden: true }, 'groups');
  private readonly tools: HTMLElement;
  private readonly legend = h('canvas', { class: 'legend', 'aria-hidden': 'true' });
  rows: Row[] = []; // new data replace the array
  loaded = false; // a response has come, maybe without rows
  private summedUp: Row[] | null = null; // the rows of colourRange and farthest
  private colourRange: [number, number] = [0, 1];
  private farthest: Row | undefined; // from the median
  unit = '';
  metric = '';
  intervalMs = 1000;
  private shownRange: Range = { from: 0, to: 1 };
  private rowHeight = 24;
  private perRow = 1;
  private colours: Uint32Array = new Uint32Array(0);
  private coloursDark: boolean | null = null;
  private at: { x: number; y: number } | null = null;
  private readonly choose: (row: Row) => void; // a node filters, a group opens

  constructor(events: {
    hover(t: number | null): void;
    zoom(range: Range): void;
    brush(range: Range | null): void;
    node(host: string): void;
    metric(name: string): void;
    sort(by: View['heatSort']): void;
    hide(): void; // hides the map, or shows it again
    groups(): void; // switches groups on or off
    group(name: string): void; // opens or closes a group
  }) {
    for (const [value, text] of [
      ['name', 'by name'],
      ['mean', 'by mean'],
      ['last', 'by last value'],
      ['deviation', 'by distance from the median'],
    ] as const)
      this.order.append(h('option', { value }, text));
    this.choose = (row) => (row.members ? events.group(row.host) : events.node(row.host));
    this.tools = h('div', { class: 'bar' }, this.picker, this.order, this.grouping, this.legend, this.about, this.now);
    this.element = h(
      'section',
      { class: 'heat', 'aria-label': 'nodes over time' },
      h('div', { class: 'bar' }, h('h2', {}, this.title), this.tools),
      this.canvas,
    );
    this.title.addEventListener('click', () => events.hide());
    this.grouping.addEventListener('click', () => events.groups());
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
    this.canvas.addEventListener('keydown', (e) => this.key(e, events));
    this.canvas.addEventListener('blur', () => {
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
        if (row) this.choose(row);
      },
    );
  }

  // Sets the texts of the buttons. `groupable`: whether groups make sense for these nodes.
  show(view: View, groupable: boolean): void {
    this.tools.hidden = this.canvas.hidden = view.heatHidden;
    this.title.setAttribute('aria-expanded', String(!view.heatHidden));
    this.grouping.hidden = !groupable;
    this.grouping.setAttribute('aria-pressed', String(view.heatGroups !== null));
  }

  // Arrow keys: up and down choose a row, left and right a time.
  private key(e: KeyboardEvent, events: { hover(t: number | null): void }): void {
    const moves: Record<string, [number, number]> = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };
    const move = moves[e.key];
    const row = this.at && this.rowAt(this.at.y);
    if (e.key === 'Enter' && row) this.choose(row);
    else if (move && this.rows.length) {
      const plot = this.plotWidth();
      const lines = Math.ceil(this.rows.length / this.perRow);
      const line = this.at ? Math.floor(this.at.y / this.rowHeight) + move[1] : 0;
      const x = this.at ? this.at.x + (move[0] * plot) / 50 : plot;
      this.at = { x: Math.min(plot, Math.max(0, x)), y: (Math.min(lines - 1, Math.max(0, line)) + 0.5) * this.rowHeight };
      events.hover(this.timeAt(this.at.x));
    } else return;
    e.preventDefault();
  }

  // Reserves the height of `nodes` rows before their data arrive, so that the parts below do not
  // move.
  reserve(nodes: number): void {
    if (this.rows.length) return;
    this.fit(nodes);
    this.canvas.style.height = `${Math.ceil(nodes / this.perRow) * this.rowHeight + BOTTOM}px`;
  }

  // The rows of groups are always high enough for their names, however high the map becomes.
  private fit(nodes: number): void {
    if (this.rows.some((r) => r.members)) {
      this.rowHeight = Math.max(NAMED, Math.min(24, Math.floor(HEIGHT_MAX / nodes)));
      this.perRow = 1;
      return;
    }
    this.rowHeight = Math.max(1, Math.min(24, Math.floor(HEIGHT_MAX / Math.max(1, nodes))));
    this.perRow = Math.max(1, Math.ceil(nodes / HEIGHT_MAX));
  }

  pixels(): number {
    return Math.max(100, (this.element.clientWidth || 600) - NAMES);
  }

  // If rows are too low for names, they extend to the edge.
  private plotWidth(): number {
    return Math.max(40, this.element.clientWidth - (this.rowHeight >= NAMED ? NAMES : 0));
  }

  private timeAt(x: number): number {
    const { from, to } = this.shownRange;
    return from + Math.min(1, Math.max(0, x / this.plotWidth())) * (to - from);
  }

  private rowAt(y: number): Row | undefined {
    return this.rows[Math.floor(y / this.rowHeight) * this.perRow];
  }

  // Runs once for new rows, not for each frame: 1,000 rows have 150,000 values.
  private sumUp(): void {
    this.summedUp = this.rows;
    this.colourRange = colourRange(this.rows);
    this.farthest = sorted(this.rows, 'deviation')[0];
  }

  draw(shown: Shown): boolean {
    const width = this.element.clientWidth;
    if (!width || this.element.hidden || this.canvas.hidden) return false;
    this.shownRange = shown.range;
    const { theme, range } = shown;
    if (!this.rows.length && !this.loaded) return false; // the reserved room stays
    this.fit(this.rows.length);
    const plot = this.plotWidth();
    const height = Math.ceil(this.rows.length / this.perRow) * this.rowHeight;
    const c = prepare(this.canvas, width, height + BOTTOM);
    this.canvas.style.height = `${height + BOTTOM}px`;
    if (this.coloursDark !== theme.dark) {
      this.colours = heatColours(theme.dark);
      this.coloursDark = theme.dark;
    }
    if (this.summedUp !== this.rows) this.sumUp();
    const [low, high] = this.colourRange;
    this.paint(c, range, Math.round(plot), height, low, high);
    c.font = theme.font;
    c.fillStyle = theme.quiet;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    const marked = new Set(shown.findings.map((f) => (f.host === undefined ? -1 : rowOf(this.rows, f.host))));
    if (this.rowHeight >= NAMED)
      this.rows.forEach((row, i) => {
        c.fillStyle = marked.has(i) ? theme.alarm : theme.quiet;
        c.fillText(fit(c, label(row), NAMES - 10), plot + 6, (i + 0.5) * this.rowHeight);
      });
    drawTimeAxis(c, theme, range, shown.origin, plot, height + 13);
    const x = (t: number) => ((t - range.from) / (range.to - range.from)) * plot;
    c.fillStyle = theme.accent;
    for (const note of shown.annotations) {
      const at = x(note.t_ns / 1e6);
      if (restartOf(note) && at >= 0 && at <= plot) c.fillRect(Math.round(at) - 1, 0, 2, height);
    }
    c.fillStyle = theme.alarm;
    for (const f of shown.findings) {
      const row = f.host === undefined ? -1 : rowOf(this.rows, f.host);
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
    if (this.at && document.activeElement === this.canvas) {
      c.strokeStyle = theme.accent;
      c.lineWidth = 2;
      c.strokeRect(1, Math.floor(this.at.y / this.rowHeight) * this.rowHeight, plot - 2, Math.max(2, this.rowHeight));
    }
    this.caption(low, high);
    return false;
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
          // A bucket extends to the next one, but not over a gap.
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
      text = `${row.members ? `mean of ${row.members.length} nodes, ` : ''}${row.host}  ${format.value(v, this.unit)}`;
    }
    say(this.now, text);
    const top = this.farthest;
    this.canvas.setAttribute(
      'aria-label',
      top
        ? `${this.metric} of ${this.rows.length} ${this.rows.some((r) => r.members) ? 'nodes and groups of nodes' : 'nodes'} over time; farthest from the median: ${top.host}, mean ${format.value(top.mean, this.unit)}`
        : `${this.metric}: no values`,
    );
  }
}
