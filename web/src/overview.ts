// The overview of the whole run: one metric, annotations and restarts as ticks, and the range of
// the charts below as a window that the user drags.

import { h, onBrush, prepare, say } from './dom';
import { gapMs, Line } from './lines';
import { restartOf } from './marks';
import type { Range } from './model';
import { drawTimeAxis } from './axis';
import { valueScale } from './scale';
import type { Shown } from './chart';

const HEIGHT = 60;

export class Overview {
  readonly element: HTMLElement;
  readonly canvas = h('canvas', { role: 'img', 'aria-label': 'the whole run' });
  private readonly label = h('span', { class: 'name' });
  private metric = '';
  lines: Line[] = [];
  intervalMs = 1000;
  whole: Range = { from: 0, to: 1 };
  private brush: Range | null = null;

  constructor(zoom: (range: Range | null) => void) {
    this.element = h('section', { class: 'overview', 'aria-label': 'the whole run' }, this.label, this.canvas);
    const range = (a: number, b: number) => ({ from: this.timeAt(a), to: this.timeAt(b) });
    onBrush(
      this.canvas,
      (a, b) => (this.brush = range(a, b)),
      (a, b) => {
        this.brush = null;
        zoom(range(a, b));
      },
      () => zoom(null),
    );
  }

  private timeAt(x: number): number {
    return this.whole.from + (x / Math.max(1, this.canvas.clientWidth)) * (this.whole.to - this.whole.from);
  }

  setMetric(name: string): void {
    this.metric = name;
    say(this.label, name);
  }

  pixels(): number {
    return this.canvas.clientWidth || 800;
  }

  draw(shown: Shown): boolean {
    const width = this.element.clientWidth;
    if (!width) return false;
    const c = prepare(this.canvas, width, HEIGHT);
    const { theme } = shown;
    const bottom = HEIGHT - 14;
    const x = (t: number) => ((t - this.whole.from) / (this.whole.to - this.whole.from)) * width;
    let low = Infinity;
    let high = -Infinity;
    for (const line of this.lines) {
      for (const v of line.low) if (v < low) low = v;
      for (const v of line.high) if (v > high) high = v;
    }
    const scale = valueScale(low, high, 2);
    const y = (v: number) => 4 + (1 - (v - scale.low) / (scale.high - scale.low)) * (bottom - 4);
    this.lines.forEach((line, i) => {
      const gap = gapMs(line, this.intervalMs);
      c.fillStyle = c.strokeStyle = this.lines.length > 1 ? theme.series[i % theme.series.length]! : theme.quiet;
      for (let from = 0; from < line.t.length; ) {
        let to = from + 1;
        while (to < line.t.length && line.t[to]! - line.t[to - 1]! <= gap) to++;
        c.globalAlpha = 0.3;
        c.beginPath();
        for (let i = from; i < to; i++) c.lineTo(x(line.t[i]!), y(line.high[i]!));
        for (let i = to - 1; i >= from; i--) c.lineTo(x(line.t[i]!), y(line.low[i]!));
        c.fill();
        c.globalAlpha = 1;
        c.beginPath();
        for (let i = from; i < to; i++) c.lineTo(x(line.t[i]!), y(line.mean[i]!));
        c.stroke();
        from = to;
      }
    });
    c.fillStyle = theme.text;
    for (const note of shown.annotations) if (!restartOf(note)) c.fillRect(x(note.t_ns / 1e6), bottom - 8, 1.5, 8);
    c.fillStyle = theme.accent;
    c.font = theme.font;
    c.textBaseline = 'top';
    c.textAlign = 'left';
    const restarts = shown.annotations.filter((note) => restartOf(note));
    let free = 0; // where the next name has room
    for (const note of restarts) {
      const left = Math.round(x(note.t_ns / 1e6)) - 1;
      c.fillRect(left, 0, 2, bottom);
      const name = `restart ${restartOf(note)}`;
      const at = Math.min(left + 5, width - c.measureText(name).width);
      if (at < free) continue;
      c.fillText(name, at, 1);
      free = at + c.measureText(name).width + 8;
    }
    c.textBaseline = 'alphabetic';
    const words = restarts.length === 1 ? ', 1 restart' : restarts.length ? `, ${restarts.length} restarts` : '';
    this.canvas.setAttribute('aria-label', `${this.metric} over the whole run${words}`);
    c.fillStyle = theme.alarm;
    for (const f of shown.findings) c.fillRect(x(f.from), bottom - 3, Math.max(3, x(f.to) - x(f.from)), 3);
    c.font = theme.font;
    drawTimeAxis(c, theme, this.whole, shown.origin, width, HEIGHT - 2);
    const window = this.brush ?? shown.range;
    const a = Math.max(0, x(window.from));
    const b = Math.min(width, x(window.to));
    if (b - a < width - 1) {
      c.fillStyle = theme.ground;
      c.globalAlpha = 0.6;
      c.fillRect(0, 0, a, bottom);
      c.fillRect(b, 0, width - b, bottom);
      c.globalAlpha = 1;
      c.strokeStyle = theme.accent;
      c.strokeRect(a + 0.5, 0.5, Math.max(1, b - a - 1), bottom - 1);
    }
    if (shown.hover !== null) {
      c.fillStyle = theme.text;
      c.fillRect(x(shown.hover), 0, 1, bottom);
    }
    return false;
  }
}
