// The task stream: a canvas with a row for each worker thread, and its tasks along the time axis.

import { fit } from './chart';
import { h, prepare, say } from './dom';
import * as format from './format';
import { FAILED, UNFINISHED, layout } from './report_data';
import type { Bin, Box } from './report_data';
import type { Scene } from './report_scene';
import { binTip, taskTip } from './report_tips';
import type { Tip } from './report_tips';
import { timeTicks } from './scale';

export const GUTTER = 84; // width for the names of workers
const TOP = 16; // height for the numbers of jobs
const BOTTOM = 16; // height for the time axis
const ROWS_HEIGHT = 560; // if rows can be that low
const ROW_MIN = 4;
const ROW_MAX = 18;
const NAME_HEIGHT = 11;
const SHADE_MIN = 3; // minimum width of a shaded dag, in pixels

export interface Drawn {
  lane: number;
  y: number;
  height: number;
  boxes: Box[];
  bins: Bin[];
}

export class TaskStream {
  rows: Drawn[] = [];
  readonly canvas = h('canvas', { role: 'img', tabindex: '0' });
  readonly about = h('span', { class: 'about', 'aria-live': 'polite' });
  readonly element = h('div', { class: 'lanes' }, this.canvas);

  constructor(private readonly scene: Scene) {}

  width(): number {
    return Math.max(1, this.element.clientWidth - GUTTER);
  }

  x(t: number): number {
    return GUTTER + ((t - this.scene.range.from) / (this.scene.range.to - this.scene.range.from)) * this.width();
  }

  // The tip of the task or bin below the pointer.
  tipAt(x: number, y: number): Tip | undefined {
    const row = this.rows.find((r) => y >= r.y && y < r.y + r.height);
    const inside = x - GUTTER;
    if (!row || inside < 0) return undefined;
    const near = (b: Box) => inside >= b.x && inside <= b.x + Math.max(2, b.w);
    const box = row.boxes.find((b) => inside >= b.x && inside < b.x + b.w);
    const bin = row.bins.find((b) => Math.floor(inside) === b.x) ?? (box ? undefined : row.bins.find((b) => Math.abs(inside - b.x - 0.5) <= 1.5));
    const found = box ?? (bin ? undefined : row.boxes.find(near));
    if (found) return taskTip(this.scene, found.task);
    if (!bin) return undefined;
    return bin.tasks.length === 1 ? taskTip(this.scene, bin.tasks[0]!) : binTip(this.scene, bin, row.lane, this.width());
  }

  draw(): void {
    const { theme, range } = this.scene;
    const width = this.element.clientWidth;
    if (!width) return;
    const bottom = this.place();
    this.canvas.style.height = `${bottom + BOTTOM}px`;
    const c = prepare(this.canvas, width, bottom + BOTTOM);
    c.font = theme.font;
    this.drawShades(c, bottom);
    this.drawNames(c);
    c.save();
    c.beginPath();
    c.rect(GUTTER, 0, width - GUTTER, bottom);
    c.clip();
    for (const row of this.rows) this.drawRow(c, row);
    c.restore();
    c.fillStyle = theme.quiet;
    c.textBaseline = 'alphabetic';
    c.textAlign = 'left';
    const { step, ticks } = timeTicks(range.from, range.to, Math.max(2, this.width() / 92));
    let free = -Infinity;
    for (const t of ticks) {
      const text = step >= 86400e3 ? format.dayOf(t) : format.clock(t, step);
      const { width: wide } = c.measureText(text);
      const x = Math.max(GUTTER, Math.min(width - wide, this.x(t) - wide / 2));
      if (x < free) continue;
      c.fillText(text, x, bottom + 13);
      free = x + wide + 8;
    }
    if (this.scene.brush) {
      c.globalAlpha = 0.16;
      c.fillStyle = theme.accent;
      c.fillRect(this.x(this.scene.brush.from), TOP, this.x(this.scene.brush.to) - this.x(this.scene.brush.from), bottom - TOP);
      c.globalAlpha = 1;
    }
    const small = this.rows.reduce((n, r) => n + r.bins.reduce((m, b) => m + b.tasks.length, 0), 0);
    const seen = small + this.rows.reduce((n, r) => n + r.boxes.length, 0);
    const binned = small ? `; ${format.count(small)} of them are narrower than a pixel and drawn together, in the colour of the longest prefix; a busier pixel is fuller` : '';
    say(this.about, `${format.count(seen)} tasks in ${format.duration((range.to - range.from) / 1000)}, a row for each thread${binned}`);
  }

  private place(): number {
    const height = Math.max(ROW_MIN, Math.min(ROW_MAX, Math.floor(ROWS_HEIGHT / this.scene.lanes.length)));
    let y = TOP;
    this.rows = this.scene.lanes.map((lane, i) => {
      if (lane.first && i) y += height > 8 ? 3 : 1;
      const row = { lane: i, y, height, ...layout(lane, this.scene.times, this.scene.data.tasks.prefix, this.scene.range, this.width()) };
      y += height;
      return row;
    });
    return y;
  }

  private drawShades(c: CanvasRenderingContext2D, bottom: number): void {
    const { theme, range } = this.scene;
    const right = GUTTER + this.width();
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    let named = -Infinity;
    this.scene.stretches.forEach((s, i) => {
      if (s.to < range.from || s.from > range.to) return;
      const a = Math.max(GUTTER, this.x(s.from));
      const b = Math.min(right, this.x(s.to));
      if (s.dag % 2 === 1 && b - a >= SHADE_MIN) {
        c.fillStyle = theme.grid;
        c.fillRect(a, TOP, b - a, bottom - TOP);
      }
      const begins = i === 0 || this.scene.stretches[i - 1]!.job !== s.job || a === GUTTER;
      const text = `job ${s.job}`;
      if (!begins || a < named) return;
      c.fillStyle = theme.quiet;
      if (a > GUTTER) c.fillRect(Math.round(a), 0, 1, bottom);
      c.fillText(text, a + 4, TOP / 2);
      named = a + c.measureText(text).width + 12;
    });
  }

  private drawNames(c: CanvasRenderingContext2D): void {
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    c.fillStyle = this.scene.theme.quiet;
    let free = -Infinity;
    this.rows.forEach((row, i) => {
      const lane = this.scene.lanes[i]!;
      const y = row.y + Math.max(row.height, NAME_HEIGHT) / 2;
      if (!lane.first || y - NAME_HEIGHT / 2 < free) return;
      const name = this.scene.names.get(lane.worker)!;
      c.fillText(fit(c, /^\d+$/.test(name) ? `worker ${name}` : name, GUTTER - 8), 0, y);
      free = y + NAME_HEIGHT / 2;
    });
  }

  private drawRow(c: CanvasRenderingContext2D, row: Drawn): void {
    const { theme } = this.scene;
    const { prefix, state, key } = this.scene.data.tasks;
    const chosen = this.scene.chosenTask();
    const high = row.height > 8 ? row.height - 2 : row.height - 1;
    const dim = (p: number) => (this.scene.lit >= 0 && p !== this.scene.lit ? 0.15 : 1);
    for (const bin of row.bins) {
      c.globalAlpha = (0.35 + 0.65 * bin.busy) * dim(bin.prefix);
      c.fillStyle = this.scene.colour(bin.prefix);
      c.fillRect(GUTTER + bin.x, row.y, 1, high);
    }
    for (const box of row.boxes) {
      const x = Math.max(GUTTER - 2, GUTTER + box.x);
      const end = Math.min(GUTTER + this.width() + 2, GUTTER + box.x + box.w);
      const w = end - x - (box.w > 3 ? 1 : 0);
      const p = prefix[box.task]!;
      c.globalAlpha = dim(p) * (state[box.task] === UNFINISHED ? 0.5 : 0.9);
      c.fillStyle = this.scene.colour(p);
      c.fillRect(x, row.y, w, high);
      c.globalAlpha = 1;
      this.drawInner(c, box.task, row, high);
      if (state[box.task] === FAILED) {
        c.fillStyle = theme.alarm;
        c.fillRect(x, row.y + high - 3, w, 3);
        c.fillRect(x, row.y, Math.min(2, w), high);
      }
      if (w > 28 && row.height >= 13 && dim(p) === 1) {
        c.fillStyle = theme.ground;
        c.textAlign = 'left';
        c.textBaseline = 'middle';
        const whole = key[box.task]!;
        const text = c.measureText(whole).width <= w - 8 ? whole : this.scene.data.prefixes[p]!.prefix;
        c.fillText(fit(c, text, w - 8), x + 4, row.y + high / 2 - 1);
      }
      if (box.task === chosen) {
        c.strokeStyle = theme.text;
        c.lineWidth = 2;
        c.strokeRect(x, row.y, Math.max(3, w), high);
      }
    }
  }

  // The time of a task's own spans, as a line at its lower edge.
  private drawInner(c: CanvasRenderingContext2D, task: number, row: Drawn, high: number): void {
    if (row.height < 10) return;
    const { inner } = this.scene.data;
    c.fillStyle = this.scene.theme.ground;
    for (const i of this.scene.innerOf.get(task) ?? []) {
      if (inner.parent[i]! >= 0) continue;
      const from = this.scene.times.from[task]! + inner.start[i]! / 1000;
      const a = this.x(from);
      const b = this.x(from + inner.duration[i]! / 1000);
      if (b - a >= 3) c.fillRect(a + 1, row.y + high - 2, b - a - 2, 1);
    }
  }
}
