// One chart: up to eight lines with their spread, labelled at the right end, or the band of many
// series. It only draws: loader.ts requests the data, and page.ts sets the range.

import type { Annotation, Metric } from './source';
import { h, onBrush, prepare, say } from './dom';
import * as format from './format';
import { gapMs, indexAt, labels, Line } from './lines';
import { restartOf } from './marks';
import type { Range } from './model';
import type { Mode, Plan } from './plan';
import { drawTimeAxis, timeAtHover } from './axis';
import { memberText, type Finding } from './findings';
import { valueScale } from './scale';
import type { Theme } from './theme';

export interface Shown {
  range: Range;
  hover: number | null; // the time at the cross-hair
  brush: Range | null;
  selection: Range | null; // the clicked span
  annotations: Annotation[];
  findings: Finding[];
  start: number; // the job's start, from which the cross-hair counts
  origin: number | null; // of compared runs: the start that the axes count from
  theme: Theme;
  colourOf: (tags: Record<string, string>, index: number, all: Line[]) => number;
}

interface Cursor {
  at: number; // pixels
  text: string;
  left: number;
  width: number;
}

export interface ChartEvents {
  hover(chart: Chart, t: number | null): void;
  brush(range: Range | null): void;
  zoom(range: Range): void;
  toggle(chart: Chart): void;
}

const HEIGHT = 132;
const BOTTOM = 16; // the time axis
const TOP = 14; // room for the highest tick's value
const LABELS = 120; // maximum width of the lines' names
const EASE_MS = 150;

export class Chart {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  private readonly now: HTMLElement;
  private readonly about: HTMLElement;
  readonly unit: string;

  // The data, and the range of the request.
  lines: Line[] = [];
  outliers: Line[] = []; // of a band: the series that lie far from the others
  mode: Mode = 'lines';
  plan: Plan | null = null;
  intervalMs = 0;
  asked: Range | null = null; // the range of the data
  sourceSeries = 0;
  allLines = false; // the user has requested all lines
  visible = false;
  failed = '';

  private measured = 0; // by pixels()
  private width = 0;
  private names: string[] = [];
  private widest = 0; // of the names, in pixels
  private low = NaN;
  private high = NaN;
  private easing: { from: [number, number]; to: [number, number]; since: number } | null = null;

  constructor(
    readonly metric: Metric,
    readonly group: string,
    private readonly events: ChartEvents,
  ) {
    this.unit = metric.kind === 'counter' ? format.rateUnit(metric.unit) : metric.unit;
    this.now = h('span', { class: 'now' });
    this.about = h('span', { class: 'about', title: 'median, least and greatest; a click shows the lines' });
    this.canvas = h('canvas', { role: 'img', 'aria-label': `${metric.name}: not requested yet` });
    const title = metric.kind === 'counter' ? metric.name.replace(/_total$/, '') : metric.name;
    this.element = h(
      'figure',
      { class: 'chart', tabindex: '0', 'data-metric': metric.name },
      h(
        'figcaption',
        {},
        h('span', { class: 'name', title: metric.help || metric.name }, title),
        h('span', { class: 'unit' }, metric.kind === 'counter' ? 'rate' : ''),
        this.about,
        this.now,
      ),
      this.canvas,
    );
    this.canvas.addEventListener('pointermove', (e) => this.events.hover(this, this.timeAt(e.offsetX)));
    this.canvas.addEventListener('pointerleave', () => this.events.hover(this, null));
    onBrush(
      this.canvas,
      (a, b) => this.events.brush(this.rangeOf(a, b)),
      (a, b) => this.events.zoom(this.rangeOf(a, b)),
      () => {
        this.events.brush(null);
        this.events.toggle(this);
      },
    );
  }

  private shownRange: Range = { from: 0, to: 1 };

  private plotWidth(): number {
    if (!this.named().length) return Math.max(40, this.width - 8);
    return Math.max(40, this.width - Math.min(Math.max(64, this.widest + 14), LABELS, this.width * 0.28));
  }

  pixels(): number {
    this.measured = this.element.clientWidth;
    return Math.max(100, this.measured || 400);
  }

  private timeAt(x: number): number {
    const share = Math.min(1, Math.max(0, x / this.plotWidth()));
    return this.shownRange.from + share * (this.shownRange.to - this.shownRange.from);
  }

  private rangeOf(a: number, b: number): Range {
    return { from: this.timeAt(a), to: this.timeAt(b) };
  }

  setOutliers(outliers: Line[]): void {
    this.outliers = outliers;
    this.describe();
  }

  // The lines with a name at their right end. A band has the colour 0, so its outliers begin with
  // 1.
  private named(): { line: Line; name: string; colour: (shown: Shown) => number }[] {
    if (this.mode === 'band' && this.outliers.length)
      return this.outliers.map((line, i) => ({ line, name: memberText(line.tags), colour: () => i + 1 }));
    if (!this.names.some(Boolean) || this.lines.length > 8) return [];
    return this.lines.map((line, i) => ({ line, name: this.names[i]!, colour: (shown) => shown.colourOf(line.tags, i, this.lines) }));
  }

  setData(data: Line[]): void {
    if (this.mode !== 'band') this.outliers = [];
    this.lines = data;
    this.names = this.mode === 'band' && data.length < 2 ? [''] : labels(data);
    this.describe();
  }

  // The text of the caption.
  title(): string {
    const unit = this.unit ? ` (${this.unit})` : '';
    return `${this.metric.name}${this.metric.kind === 'counter' ? ', rate' : ''}${unit}${this.mode === 'band' ? `, ${this.sourceSeries} series: median, ${this.lines[0]?.lower ? 'quartiles, ' : ''}least, greatest` : ''}`;
  }

  hasData(): boolean {
    return this.lines.some((l) => l.t.length > 0);
  }

  // The extremes within a range: the visible one, or that of a span.
  extremes(range: Range): { low: number; high: number; mean: number; n: number } {
    let low = Infinity;
    let high = -Infinity;
    let sum = 0;
    let n = 0;
    for (const line of this.lines)
      for (let i = 0; i < line.t.length; i++) {
        if (line.t[i]! < range.from - this.intervalMs || line.t[i]! > range.to || Number.isNaN(line.mean[i]!)) continue;
        low = Math.min(low, line.low[i]!);
        high = Math.max(high, line.high[i]!);
        sum += line.mean[i]!;
        n++;
      }
    return { low, high, mean: sum / n, n };
  }

  // The description for screen readers.
  describe(): void {
    const { low, high, mean, n } = this.extremes(this.asked ?? { from: -Infinity, to: Infinity });
    const last = this.lines.map((l) => l.mean[l.mean.length - 1]).find((v) => v !== undefined);
    const first = this.lines.map((l) => l.mean[0]).find((v) => v !== undefined);
    const text = (v: number | undefined) => format.value(v, this.unit);
    const spread = high - low;
    const trend =
      first === undefined || last === undefined || Math.abs(last - first) < spread * 0.1
        ? 'steady'
        : last > first
          ? 'rising'
          : 'falling';
    this.canvas.setAttribute(
      'aria-label',
      n
        ? `${this.metric.name}: last ${text(last)}, least ${text(low)}, greatest ${text(high)}, mean ${text(mean)}, ${trend}` +
            (this.lines.length > 1 ? `, ${this.lines.length} lines` : '') +
            (this.outliers.length ? `; far from the others: ${this.outliers.map((l) => memberText(l.tags)).join('; ')}` : '')
        : `${this.metric.name}: no values`,
    );
  }

  // Returns true if it has to be drawn again, because its axis is moving.
  draw(shown: Shown): boolean {
    this.shownRange = shown.range;
    const width = (this.width = this.measured);
    if (!width) return false;
    const c = prepare(this.canvas, width, HEIGHT);
    const { theme, range } = shown;
    c.font = theme.font;
    const named = this.named();
    this.widest = Math.max(0, ...named.map(({ name }) => c.measureText(name).width));
    const plot = this.plotWidth();
    const bottom = HEIGHT - BOTTOM;
    const seen = this.extremes(range);
    const scale = valueScale(this.unit === 'percent' ? Math.min(0, seen.low) : seen.low, seen.high, 3, this.unit.startsWith('bytes'));
    const moving = this.ease(scale.low, scale.high);
    const x = (t: number) => ((t - range.from) / (range.to - range.from)) * plot;
    const y = (v: number) => TOP + (1 - (v - this.low) / (this.high - this.low)) * (bottom - TOP);

    // The grid, with its labels inside.
    c.lineWidth = 1;
    c.strokeStyle = theme.grid;
    c.textBaseline = 'middle';
    for (const v of scale.ticks) {
      const at = Math.round(y(v)) + 0.5;
      if (at < TOP - 2 || at > bottom + 2) continue;
      c.beginPath();
      c.moveTo(0, at);
      c.lineTo(plot, at);
      c.stroke();
    }
    const cursor = this.cursor(c, shown, x, plot);
    drawTimeAxis(c, theme, range, shown.origin, plot, HEIGHT - 3, cursor && { from: cursor.left, to: cursor.left + cursor.width });

    c.save();
    c.beginPath();
    c.rect(0, 0, plot, bottom + 1);
    c.clip();
    for (const area of [shown.selection, shown.brush]) {
      if (!area) continue;
      c.globalAlpha = 0.16;
      c.fillStyle = theme.accent;
      c.fillRect(x(area.from), 0, Math.max(1, x(area.to) - x(area.from)), bottom);
      c.globalAlpha = 1;
    }
    for (const note of shown.annotations) {
      const restart = restartOf(note) > 0;
      c.strokeStyle = restart ? theme.accent : theme.quiet;
      c.setLineDash(restart ? [] : [2, 3]);
      const at = Math.round(x(note.t_ns / 1e6)) + 0.5;
      if (at < 0 || at > plot) continue;
      c.beginPath();
      c.moveTo(at, 0);
      c.lineTo(at, bottom);
      c.stroke();
    }
    c.setLineDash([]);
    const found = shown.findings.filter((f) => f.metric === this.metric.name);
    c.fillStyle = theme.alarm;
    for (const f of found) c.fillRect(x(f.from), bottom - 3, Math.max(3, x(f.to) - x(f.from)), 3);
    this.lines.forEach((line, i) => {
      const colour = theme.series[shown.colourOf(line.tags, i, this.lines) % theme.series.length]!;
      this.drawLine(c, line, colour, x, y, plot);
    });
    if (this.mode === 'band')
      for (const { line, colour } of named) this.drawLine(c, line, theme.series[colour(shown) % theme.series.length]!, x, y, plot);
    c.restore();

    // The labels of the grid lie above the lines, with a background around them.
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    c.lineJoin = 'round';
    const texts = format.ticks(scale.ticks, this.unit);
    for (const [i, v] of scale.ticks.entries()) {
      const at = y(v);
      if (at < TOP - 2 || at > bottom - 4) continue;
      c.lineWidth = 3;
      c.strokeStyle = theme.ground;
      const text = texts[i]!;
      c.strokeText(text, 2, at - 6);
      c.fillStyle = theme.quiet;
      c.fillText(text, 2, at - 6);
    }
    this.drawLabels(c, shown, named, plot, y);
    if (cursor) this.drawCursor(c, shown, cursor, bottom);
    this.caption(shown);
    return moving;
  }

  // The axis follows the data smoothly, unless the user prefers no motion.
  private ease(low: number, high: number): boolean {
    const now = performance.now();
    const target = this.easing?.to ?? [this.low, this.high];
    if (low !== target[0] || high !== target[1]) {
      const still = Number.isNaN(this.low) || matchMedia('(prefers-reduced-motion: reduce)').matches;
      if (still) [this.low, this.high, this.easing] = [low, high, null];
      else this.easing = { from: [this.low, this.high], to: [low, high], since: now };
    }
    if (!this.easing) return false;
    const share = Math.min(1, (now - this.easing.since) / EASE_MS);
    const soft = share * (2 - share);
    const { from, to } = this.easing;
    this.low = from[0] + (to[0] - from[0]) * soft;
    this.high = from[1] + (to[1] - from[1]) * soft;
    if (share === 1) this.easing = null;
    return share < 1;
  }

  private drawLine(
    c: CanvasRenderingContext2D,
    line: Line,
    colour: string,
    x: (t: number) => number,
    y: (v: number) => number,
    plot: number,
  ): void {
    const gap = gapMs(line, this.intervalMs);
    const runs: [number, number][] = []; // of consecutive buckets
    let begin = -1;
    for (let i = 0; i < line.t.length; i++) {
      if (Number.isNaN(line.mean[i]!)) {
        if (begin >= 0) runs.push([begin, i]);
        begin = -1;
        continue;
      }
      if (begin >= 0 && line.t[i]! - line.t[i - 1]! > gap) {
        runs.push([begin, i]);
        begin = i;
      }
      if (begin < 0) begin = i;
    }
    if (begin >= 0) runs.push([begin, line.t.length]);
    c.fillStyle = colour;
    c.strokeStyle = colour;
    c.lineWidth = 1.5;
    c.lineJoin = 'round';
    for (const [from, to] of runs) {
      if (x(line.t[to - 1]!) < -plot || x(line.t[from]!) > 2 * plot) continue;
      const shade = (upper: number[], lower: number[]) => {
        c.beginPath();
        for (let i = from; i < to; i++) c.lineTo(x(line.t[i]!), y(upper[i]!));
        for (let i = to - 1; i >= from; i--) c.lineTo(x(line.t[i]!), y(lower[i]!));
        c.fill();
      };
      c.globalAlpha = this.mode === 'band' ? 0.22 : 0.16;
      shade(line.high, line.low);
      if (line.upper && line.lower) shade(line.upper, line.lower);
      c.globalAlpha = this.lines.length > 8 ? 0.55 : 1;
      c.beginPath();
      for (let i = from; i < to; i++) c.lineTo(x(line.t[i]!), y(line.mean[i]!));
      c.stroke();
      // A single point is drawn, too.
      if (to - from === 1) c.fillRect(x(line.t[from]!) - 1.5, y(line.mean[from]!) - 1.5, 3, 3);
    }
    c.globalAlpha = 1;
  }

  // Names at the right ends, moved apart where they would overlap; with the value under the
  // cross-hair.
  private drawLabels(c: CanvasRenderingContext2D, shown: Shown, named: ReturnType<Chart['named']>, plot: number, y: (v: number) => number): void {
    const rows = named
      .map(({ line, name, colour }) => ({ line, name, colour, at: shown.hover === null ? line.mean.length - 1 : indexAt(line, shown.hover, gapMs(line, this.intervalMs)) }))
      .filter(({ line }) => line.mean.length)
      .map((row) => ({ ...row, v: row.at >= 0 ? row.line.mean[row.at]! : NaN, y: 0 }));
    for (const row of rows) row.y = y(Number.isNaN(row.v) ? row.line.mean[row.line.mean.length - 1]! : row.v);
    rows.sort((a, b) => a.y - b.y);
    const step = 12;
    let free = 6;
    for (const row of rows) free = (row.y = Math.max(row.y, free)) + step;
    let most = HEIGHT - 6;
    for (const row of rows.slice().reverse()) most = (row.y = Math.min(row.y, most)) - step;
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    for (const row of rows) {
      c.fillStyle = shown.theme.series[row.colour(shown) % shown.theme.series.length]!;
      const { name } = row;
      const room = this.width - plot - 8;
      const value = format.value(row.v, this.unit);
      // If the name does not fit beside the value, the colour identifies the line.
      const text = shown.hover === null ? name : c.measureText(`${value}  ${name.slice(0, 3)}…`).width <= room ? `${value}  ${name}` : value;
      c.fillText(fit(c, text, room), plot + 6, row.y);
    }
  }

  // The place of the cross-hair and of the time at its foot; null: it is outside.
  private cursor(c: CanvasRenderingContext2D, shown: Shown, x: (t: number) => number, plot: number): Cursor | null {
    if (shown.hover === null) return null;
    const at = Math.round(x(shown.hover)) + 0.5;
    if (at < 0 || at > plot) return null;
    const text = timeAtHover(shown.hover, shown.range, shown.start, shown.origin);
    const width = c.measureText(text).width + 8;
    return { at, text, width, left: Math.max(0, Math.min(plot - width, at - width / 2)) };
  }

  private drawCursor(c: CanvasRenderingContext2D, shown: Shown, { at, text, left }: Cursor, bottom: number): void {
    c.strokeStyle = shown.theme.text;
    c.lineWidth = 1;
    c.globalAlpha = 0.6;
    c.beginPath();
    c.moveTo(at, 0);
    c.lineTo(at, bottom);
    c.stroke();
    c.globalAlpha = 1;
    c.fillStyle = shown.theme.text;
    c.textAlign = 'left';
    c.textBaseline = 'alphabetic';
    c.fillText(text, left + 4, HEIGHT - 3);
  }

  private caption(shown: Shown): void {
    const about = this.mode === 'band' ? `${this.sourceSeries} series` : '';
    let text = '';
    const one = this.lines.length === 1 ? this.lines[0]! : null;
    const selected = shown.selection ? this.extremes(shown.selection) : null;
    if (this.failed) text = this.failed;
    else if (selected?.n) text = `peak ${format.value(selected.high, this.unit)} · mean ${format.value(selected.mean, this.unit)}`;
    else if (one) {
      const at = shown.hover === null ? one.t.length - 1 : indexAt(one, shown.hover, gapMs(one, this.intervalMs));
      text = at >= 0 ? format.value(one.mean[at], this.unit) : format.MISSING;
      if (at >= 0 && this.mode === 'band')
        text = `${format.value(one.low[at], this.unit)} … ${text} … ${format.value(one.high[at], this.unit)}`;
    }
    say(this.about, about);
    say(this.now, text);
    this.now.classList.toggle('failed', this.failed !== '');
  }
}

// Shortens a text that is too wide with an ellipsis.
export function fit(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (c.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && c.measureText(text.slice(0, end) + '…').width > width) end--;
  return text.slice(0, end) + '…';
}
