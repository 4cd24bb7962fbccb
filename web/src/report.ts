// The report of a Dask cluster's tasks: one file that is opened from disk and makes no requests. It
// draws with the page's modules; report_data.ts computes what is drawn.

import { fit } from './chart';
import { h, onBrush, prepare, say } from './dom';
import * as format from './format';
import { panned, zoomed } from './model';
import type { Range } from './model';
import { FAILED, ORDERS, UNFINISHED, lanes, layout, pieces, stretchAt, stretches, timesOf, tree } from './report_data';
import type { Bin, Box, Lane, Node, Order, Packed, Piece, Row, Stretch, Times } from './report_data';
import { timeTicks } from './scale';
import { applyStored, readTheme, toggle } from './theme';
import type { Theme } from './theme';

const GUTTER = 84; // width for the names of workers
const TOP = 16; // height for the numbers of jobs
const BOTTOM = 16; // height for the time axis
const ROWS_HEIGHT = 560; // if rows can be that low
const ROW_MIN = 4;
const ROW_MAX = 18;
const NAME_HEIGHT = 11;
const FLAME_ROW = 20;
const SHADE_MIN = 3; // minimum width of a shaded dag, in pixels
const OWN_COLOURS = 7; // for the prefixes with the most time; the others share the last one
const LISTED = 200; // rows of the table
const ZOOM = 0.8;
const WHEEL = 0.0015;

interface Drawn {
  lane: number;
  y: number;
  height: number;
  boxes: Box[];
  bins: Bin[];
}

async function unpacked(): Promise<Packed> {
  const text = document.getElementById('data')!.textContent!.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(stream).json()) as Packed;
}

export class Report {
  private readonly times: Times;
  private readonly lanes: Lane[];
  private readonly stretches: Stretch[];
  private readonly names: Map<number, string>; // of workers
  private readonly innerOf = new Map<number, number[]>();
  private readonly whole: Range;
  private range: Range;
  private brush: Range | null = null;
  private order: Order = 'prefix';
  // names of the nodes from the root's child to the one that fills the width
  private zoomedTo: string[] = [];
  private lit = -1; // the selected prefix; -1: all
  private chosen: { lane: number; at: number } | null = null; // with the keyboard
  private rows: Drawn[] = [];
  private flame: Piece[] = [];
  private root: Node | null = null;
  private rootOf = '';
  private theme: Theme = readTheme();
  private pending = false;

  private readonly canvas = h('canvas', { role: 'img', tabindex: '0' });
  private readonly flameCanvas = h('canvas', { role: 'img', tabindex: '0' });
  private readonly about = h('span', { class: 'about', 'aria-live': 'polite' });
  private readonly tip = h('div', { class: 'tip', role: 'status' });
  private readonly legend = h('div', { class: 'legend', role: 'group', 'aria-label': 'prefixes' });
  private readonly lanesElement = h('div', { class: 'lanes' }, this.canvas);
  private readonly flameElement = h('div', { class: 'flame' }, this.flameCanvas);
  private readonly help = h('dialog', { 'aria-label': 'keys' });
  private readonly select = h('select', { 'aria-label': 'order' });

  constructor(private readonly data: Packed) {
    this.times = timesOf(data);
    this.lanes = lanes(data, this.times);
    this.stretches = stretches(data);
    this.names = new Map(data.workers.map((w) => [w.worker, w.name]));
    data.inner.task.forEach((task, i) => {
      const mine = this.innerOf.get(task);
      if (mine) mine.push(i);
      else this.innerOf.set(task, [i]);
    });
    this.whole = this.wholeRange();
    this.range = this.whole;
  }

  private wholeRange(): Range {
    let from = Infinity;
    let to = -Infinity;
    for (const [a, b] of this.data.periods) {
      from = Math.min(from, this.data.origin_ms + a / 1000);
      to = Math.max(to, this.data.origin_ms + b / 1000);
    }
    for (let i = 0; i < this.times.from.length; i++) {
      from = Math.min(from, this.times.from[i]!);
      to = Math.max(to, this.times.to[i]!);
    }
    return from < to ? { from, to } : { from: this.data.origin_ms, to: this.data.origin_ms + 1000 };
  }

  start(): void {
    document.title = `sonde: ${this.data.title}`;
    document.body.append(this.header());
    const count = this.times.from.length;
    if (!count) {
      document.body.append(h('main', {}, h('div', { class: 'empty' }, h('h2', {}, 'No tasks'), h('p', {}, 'The monitor recorded no task of this cluster.'))));
      return;
    }
    this.select.append(...ORDERS.map((o) => h('option', { value: o }, o)));
    this.select.addEventListener('change', () => {
      this.order = this.select.value as Order;
      this.zoomedTo = [];
      this.redraw();
    });
    this.canvas.setAttribute('aria-label', `${count} tasks of ${this.data.workers.length} workers; the table below sums them up`);
    this.flameCanvas.setAttribute('aria-label', 'where the time went; the table below has the sums');
    this.tip.hidden = true;
    document.body.append(
      h(
        'main',
        {},
        h('section', { 'aria-label': 'task stream' }, h('div', { class: 'bar' }, h('h2', {}, 'Task stream'), this.about), this.legend, this.lanesElement),
        h(
          'section',
          { 'aria-label': 'flame graph' },
          h('div', { class: 'bar' }, h('h2', {}, 'Where the time went'), this.select, h('span', { class: 'about' }, 'of the range above; a click on a box enlarges it')),
          this.flameElement,
        ),
        h('section', { 'aria-label': 'prefixes' }, h('h2', {}, 'Prefixes'), this.table()),
      ),
      this.tip,
      this.help,
    );
    this.makeLegend();
    this.makeHelp();
    this.listen();
    this.redraw();
  }

  private header(): HTMLElement {
    const { data } = this;
    const n = this.times.from.length;
    const failed = data.prefixes.reduce((s, p) => s + p.errors, 0);
    return h(
      'header',
      {},
      h('h1', {}, data.title),
      h('span', { class: 'level' }, data.cluster),
      h('span', {}, `${data.workers.length} ${data.workers.length === 1 ? 'worker' : 'workers'}`),
      h('span', {}, `${n.toLocaleString('en')} ${n === 1 ? 'task' : 'tasks'}`),
      failed ? h('span', { class: 'alarm' }, `${failed} failed`) : null,
      h('span', { class: 'points' }, `${format.clock(this.whole.from, 1000, true)}, ${format.duration((this.whole.to - this.whole.from) / 1000)}`),
      h(
        'div',
        { class: 'controls' },
        h('button', { type: 'button', click: () => this.show(this.whole) }, 'everything'),
        h('button', { type: 'button', click: () => this.switchTheme() }, 'dark or light'),
        h('button', { type: 'button', click: () => this.help.showModal() }, 'keys'),
      ),
    );
  }

  private colourIndex(prefix: number): number {
    return prefix < 0 || prefix >= OWN_COLOURS ? OWN_COLOURS : prefix;
  }

  private colour(prefix: number): string {
    return this.theme.series[this.colourIndex(prefix)]!;
  }

  private makeLegend(): void {
    const { prefixes } = this.data;
    const entry = (text: string, prefix: number) =>
      h(
        'button',
        { type: 'button', 'aria-pressed': 'false', 'data-prefix': String(prefix), title: text, click: () => this.light(prefix) },
        h('span', { class: `swatch colour-${this.colourIndex(prefix)}` }),
        text,
      );
    this.legend.append(...prefixes.slice(0, OWN_COLOURS).map((p, i) => entry(p.prefix, i)));
    if (prefixes.length === OWN_COLOURS + 1) this.legend.append(entry(prefixes[OWN_COLOURS]!.prefix, OWN_COLOURS));
    else if (prefixes.length > OWN_COLOURS)
      this.legend.append(h('span', { class: 'about' }, h('span', { class: `swatch colour-${OWN_COLOURS}` }), `${prefixes.length - OWN_COLOURS} more, in the table below`));
  }

  private light(prefix: number): void {
    this.lit = this.lit === prefix ? -1 : prefix;
    for (const button of document.querySelectorAll<HTMLElement>('[data-prefix]'))
      button.setAttribute('aria-pressed', String(Number(button.dataset.prefix) === this.lit));
    this.redraw();
  }

  private table(): HTMLElement {
    const rows = this.data.prefixes;
    const heads = ['prefix', 'tasks', 'total', 'mean', 'p95', 'output', 'errors', 'unfinished'];
    const seconds = (s: number | null) => (s === null ? format.MISSING : format.duration(s));
    const row = (r: Row, i: number) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row', title: r.prefix }, h('span', { class: `swatch colour-${this.colourIndex(i)}` }), r.prefix),
        ...[format.count(r.count), seconds(r.count > r.unfinished ? r.seconds : null), seconds(r.mean), seconds(r.p95), format.value(r.nbytes, 'bytes')].map((t) => h('td', {}, t)),
        h('td', r.errors ? { class: 'alarm' } : {}, String(r.errors)),
        h('td', {}, String(r.unfinished)),
      );
    const more = rows.length > LISTED ? h('p', { class: 'about' }, `${rows.length - LISTED} more, which took less time`) : null;
    return h(
      'div',
      { class: 'table' },
      h('table', {}, h('thead', {}, h('tr', {}, ...heads.map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, ...rows.slice(0, LISTED).map(row))),
      more,
    );
  }

  private makeHelp(): void {
    const keys: [string, string][] = [
      ['← →, h l', 'earlier, later'],
      ['+ −, wheel', 'zoom; a drag chooses a range'],
      ['0', 'everything'],
      ['↑ ↓', 'another thread'],
      ['p n', 'the task before, the next one'],
      ['Esc', 'leaves a task, a box of the flame graph, a prefix'],
      ['t', 'dark or light'],
      ['?', 'this list'],
    ];
    this.help.append(
      h('h2', {}, 'Keys'),
      h('dl', {}, ...keys.flatMap(([k, what]) => [h('dt', {}, h('kbd', {}, k)), h('dd', {}, what)])),
      h('form', { method: 'dialog' }, h('button', {}, 'close')),
    );
  }

  // ---- user actions

  private listen(): void {
    const at = (x: number) => this.range.from + ((x - GUTTER) / this.width()) * (this.range.to - this.range.from);
    this.canvas.addEventListener('pointermove', (e) => this.hover(e.offsetX, e.offsetY, e.clientX, e.clientY));
    this.canvas.addEventListener('pointerleave', () => this.hideTip());
    this.canvas.addEventListener(
      'wheel',
      (e) => {
        if (e.ctrlKey || e.offsetX < GUTTER) return;
        e.preventDefault();
        const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : e.shiftKey ? e.deltaY : 0;
        if (sideways) this.show(panned(this.range, sideways / this.width(), this.whole));
        else this.show(zoomed(this.range, Math.exp(e.deltaY * WHEEL), Math.max(0, (e.offsetX - GUTTER) / this.width()), this.whole));
      },
      { passive: false },
    );
    onBrush(
      this.canvas,
      (a, b) => {
        this.brush = { from: at(a), to: at(b) };
        this.redraw();
      },
      (a, b) => this.show({ from: Math.max(this.range.from, at(a)), to: Math.min(this.range.to, at(b)) }),
      () => {
        this.brush = null;
        this.redraw();
      },
    );
    this.flameCanvas.addEventListener('pointermove', (e) => {
      const piece = this.pieceAt(e.offsetX, e.offsetY);
      if (piece) this.showTip(this.ofPiece(piece), e.clientX, e.clientY);
      else this.hideTip();
    });
    this.flameCanvas.addEventListener('pointerleave', () => this.hideTip());
    this.flameCanvas.addEventListener('click', (e) => {
      const piece = this.pieceAt(e.offsetX, e.offsetY);
      if (!piece || piece.more > 1) return;
      this.zoomedTo = [...piece.path, piece.node].slice(1).map((n) => n.name);
      this.redraw();
    });
    document.addEventListener('keydown', (e) => this.key(e));
    window.addEventListener('resize', () => this.redraw());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  private key(e: KeyboardEvent): void {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || this.help.open || target.tagName === 'SELECT') return;
    const centre = this.chosenTask();
    const around = centre === undefined ? 0.5 : Math.min(1, Math.max(0, (this.times.from[centre]! - this.range.from) / (this.range.to - this.range.from)));
    const actions: Record<string, () => void> = {
      h: () => this.show(panned(this.range, -0.25, this.whole)),
      l: () => this.show(panned(this.range, 0.25, this.whole)),
      '+': () => this.show(zoomed(this.range, ZOOM, around, this.whole)),
      '-': () => this.show(zoomed(this.range, 1 / ZOOM, around, this.whole)),
      '0': () => this.show(this.whole),
      n: () => this.choose(0, 1),
      p: () => this.choose(0, -1),
      ArrowDown: () => this.choose(1, 0),
      ArrowUp: () => this.choose(-1, 0),
      t: () => this.switchTheme(),
      '?': () => this.help.showModal(),
      Escape: () => this.leave(),
    };
    Object.assign(actions, { ArrowLeft: actions.h, ArrowRight: actions.l, '=': actions['+'] });
    const action = actions[e.key];
    if (!action || ((e.key === 'ArrowUp' || e.key === 'ArrowDown') && target !== this.canvas)) return;
    e.preventDefault();
    action();
  }

  private switchTheme(): void {
    toggle();
    this.redraw();
  }

  private leave(): void {
    if (this.chosen) this.chosen = null;
    else if (this.zoomedTo.length) this.zoomedTo = [];
    else if (this.lit >= 0) return this.light(this.lit);
    this.hideTip();
    this.redraw();
  }

  show(range: Range): void {
    this.brush = null;
    if (range.to > range.from) this.range = range;
    this.hideTip();
    this.redraw();
  }

  private chosenTask(): number | undefined {
    return this.chosen ? this.lanes[this.chosen.lane]!.tasks[this.chosen.at] : undefined;
  }

  // Selects the next task of a thread, or the task of another thread at that time, and announces
  // it.
  private choose(lanesOn: number, tasksOn: number): void {
    const before = this.chosenTask();
    const t = before === undefined ? this.range.from : this.times.from[before]!;
    const count = this.lanes.length;
    let lane = this.chosen?.lane ?? (lanesOn < 0 ? count : lanesOn > 0 ? -1 : 0);
    if (lanesOn || !this.lanes[lane]!.tasks.length)
      for (let tried = 0; tried < count; tried++) {
        lane = (lane + (lanesOn || 1) + count) % count;
        if (this.lanes[lane]!.tasks.length) break;
      }
    const tasks = this.lanes[lane]!.tasks;
    const same = this.chosen?.lane === lane;
    const next = tasks.findIndex((i) => this.times.to[i]! >= t);
    const at = same ? this.chosen!.at + tasksOn : next < 0 ? tasks.length - 1 : next;
    this.chosen = { lane, at: Math.min(tasks.length - 1, Math.max(0, at)) };
    const task = this.chosenTask()!;
    const { from, to } = this.range;
    if (this.times.to[task]! < from || this.times.from[task]! > to)
      this.range = panned(this.range, (this.times.from[task]! - (from + to) / 2) / (to - from), this.whole);
    this.draw();
    const row = this.rows[lane]!;
    const box = this.canvas.getBoundingClientRect();
    this.showTip(this.ofTask(task), box.left + this.x(this.times.from[task]!), box.top + row.y + row.height);
  }

  // ---- the item below the pointer

  private hover(x: number, y: number, clientX: number, clientY: number): void {
    const row = this.rows.find((r) => y >= r.y && y < r.y + r.height);
    const inside = x - GUTTER;
    if (!row || inside < 0) return this.hideTip();
    const near = (b: Box) => inside >= b.x && inside <= b.x + Math.max(2, b.w);
    const box = row.boxes.find((b) => inside >= b.x && inside < b.x + b.w);
    const bin = row.bins.find((b) => Math.floor(inside) === b.x) ?? (box ? undefined : row.bins.find((b) => Math.abs(inside - b.x - 0.5) <= 1.5));
    const found = box ?? (bin ? undefined : row.boxes.find(near));
    if (found) this.showTip(this.ofTask(found.task), clientX, clientY);
    else if (bin) this.showTip(bin.tasks.length === 1 ? this.ofTask(bin.tasks[0]!) : this.ofBin(bin, row.lane), clientX, clientY);
    else this.hideTip();
  }

  private ofTask(task: number): [string, [string, string][]] {
    const { tasks, prefixes, inner } = this.data;
    const from = this.times.from[task]!;
    const stretch = stretchAt(this.stretches, from);
    const state = tasks.state[task]!;
    const lines: [string, string][] = [
      ['prefix', prefixes[tasks.prefix[task]!]!.prefix],
      ['worker', this.names.get(tasks.worker[task]!)!],
      ['start', `${format.clock(from, 0.5)}, ${format.duration((from - this.whole.from) / 1000)} after the beginning`],
      ['duration', format.duration((this.times.to[task]! - from) / 1000) + (state === UNFINISHED ? ', cut off' : '')],
    ];
    if (stretch) lines.push(['cluster at', `job ${stretch.job}, dag ${stretch.dag}`]);
    const size = tasks.nbytes[task];
    if (size !== null && size !== undefined) lines.push(['output', format.value(size, 'bytes')]);
    if (state === FAILED) lines.push(['failed', 'yes']);
    for (const i of (this.innerOf.get(task) ?? []).slice(0, 6)) {
      const tags = Object.entries(inner.tags[i]!).map(([k, v]) => `${k}=${v}`);
      lines.push([inner.name[i]!, [format.duration(inner.duration[i]! / 1e6), ...tags].join(' ')]);
    }
    return [tasks.key[task]!, lines];
  }

  private ofBin(bin: Bin, lane: number): [string, [string, string][]] {
    const { tasks, prefixes } = this.data;
    const of = new Map<number, number>();
    for (const task of bin.tasks) of.set(tasks.prefix[task]!, (of.get(tasks.prefix[task]!) ?? 0) + 1);
    const most = [...of].sort((a, b) => b[1] - a[1]).slice(0, 5);
    return [
      `${bin.tasks.length} tasks of this pixel`,
      [
        ['worker', this.names.get(this.lanes[lane]!.worker)!],
        ['start', format.clock(this.times.from[bin.tasks[0]!]!, 0.5)],
        ['busy', `${format.value(bin.busy * 100, 'percent')} of ${format.duration((this.range.to - this.range.from) / this.width() / 1000)}`],
        ...most.map(([p, n]): [string, string] => [prefixes[p]!.prefix, String(n)]),
      ],
    ];
  }

  private ofPiece(piece: Piece): [string, [string, string][]] {
    const top = piece.path[0] ?? piece.node;
    const above = piece.path[piece.path.length - 1];
    const lines: [string, string][] = [
      ['time', `${format.duration(piece.node.ms / 1000)}, ${format.value((piece.node.ms / top.ms) * 100, 'percent')} of all`],
      ['count', format.count(piece.node.count)],
    ];
    if (above && above !== top) lines.push([`of ${above.name}`, format.value((piece.node.ms / above.ms) * 100, 'percent')]);
    return [piece.node.name, lines];
  }

  private pieceAt(x: number, y: number): Piece | undefined {
    const width = this.flameElement.clientWidth;
    return this.flame.find((p) => Math.floor(y / FLAME_ROW) === p.depth && x >= p.x * width && x < (p.x + p.w) * width);
  }

  private showTip([title, lines]: [string, [string, string][]], clientX: number, clientY: number): void {
    this.tip.replaceChildren(h('strong', {}, title), h('dl', {}, ...lines.flatMap(([k, v]) => [h('dt', {}, k), h('dd', {}, v)])));
    this.tip.hidden = false;
    const { width, height } = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(clientX + 14, window.innerWidth - width - 8))}px`;
    this.tip.style.top = `${clientY + 16 + height > window.innerHeight ? Math.max(4, clientY - height - 12) : clientY + 16}px`;
  }

  private hideTip(): void {
    this.tip.hidden = true;
  }

  // ---- drawing

  private width(): number {
    return Math.max(1, this.lanesElement.clientWidth - GUTTER);
  }

  private x(t: number): number {
    return GUTTER + ((t - this.range.from) / (this.range.to - this.range.from)) * this.width();
  }

  private redraw(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw(): void {
    this.theme = readTheme();
    this.drawLanes();
    this.drawFlame();
  }

  private place(): number {
    const height = Math.max(ROW_MIN, Math.min(ROW_MAX, Math.floor(ROWS_HEIGHT / this.lanes.length)));
    let y = TOP;
    this.rows = this.lanes.map((lane, i) => {
      if (lane.first && i) y += height > 8 ? 3 : 1;
      const row = { lane: i, y, height, ...layout(lane, this.times, this.data.tasks.prefix, this.range, this.width()) };
      y += height;
      return row;
    });
    return y;
  }

  private drawLanes(): void {
    const { theme, range } = this;
    const width = this.lanesElement.clientWidth;
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
    if (this.brush) {
      c.globalAlpha = 0.16;
      c.fillStyle = theme.accent;
      c.fillRect(this.x(this.brush.from), TOP, this.x(this.brush.to) - this.x(this.brush.from), bottom - TOP);
      c.globalAlpha = 1;
    }
    const small = this.rows.reduce((n, r) => n + r.bins.reduce((m, b) => m + b.tasks.length, 0), 0);
    const seen = small + this.rows.reduce((n, r) => n + r.boxes.length, 0);
    const binned = small ? `; ${format.count(small)} of them are narrower than a pixel and drawn together: the colour is that of the longest prefix, the fuller the busier` : '';
    say(this.about, `${format.count(seen)} tasks in ${format.duration((range.to - range.from) / 1000)}, a row for each thread${binned}`);
  }

  private drawShades(c: CanvasRenderingContext2D, bottom: number): void {
    const { theme, range } = this;
    const right = GUTTER + this.width();
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    let named = -Infinity;
    this.stretches.forEach((s, i) => {
      if (s.to < range.from || s.from > range.to) return;
      const a = Math.max(GUTTER, this.x(s.from));
      const b = Math.min(right, this.x(s.to));
      if (s.dag % 2 === 1 && b - a >= SHADE_MIN) {
        c.fillStyle = theme.grid;
        c.fillRect(a, TOP, b - a, bottom - TOP);
      }
      const begins = i === 0 || this.stretches[i - 1]!.job !== s.job || a === GUTTER;
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
    c.fillStyle = this.theme.quiet;
    let free = -Infinity;
    this.rows.forEach((row, i) => {
      const lane = this.lanes[i]!;
      const y = row.y + Math.max(row.height, NAME_HEIGHT) / 2;
      if (!lane.first || y - NAME_HEIGHT / 2 < free) return;
      const name = this.names.get(lane.worker)!;
      c.fillText(fit(c, /^\d+$/.test(name) ? `worker ${name}` : name, GUTTER - 8), 0, y);
      free = y + NAME_HEIGHT / 2;
    });
  }

  private drawRow(c: CanvasRenderingContext2D, row: Drawn): void {
    const { theme } = this;
    const { prefix, state, key } = this.data.tasks;
    const chosen = this.chosenTask();
    const high = row.height > 8 ? row.height - 2 : row.height - 1;
    const dim = (p: number) => (this.lit >= 0 && p !== this.lit ? 0.15 : 1);
    for (const bin of row.bins) {
      c.globalAlpha = (0.35 + 0.65 * bin.busy) * dim(bin.prefix);
      c.fillStyle = this.colour(bin.prefix);
      c.fillRect(GUTTER + bin.x, row.y, 1, high);
    }
    for (const box of row.boxes) {
      const x = Math.max(GUTTER - 2, GUTTER + box.x);
      const end = Math.min(GUTTER + this.width() + 2, GUTTER + box.x + box.w);
      const w = end - x - (box.w > 3 ? 1 : 0);
      const p = prefix[box.task]!;
      c.globalAlpha = dim(p) * (state[box.task] === UNFINISHED ? 0.5 : 0.9);
      c.fillStyle = this.colour(p);
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
        const text = c.measureText(whole).width <= w - 8 ? whole : this.data.prefixes[p]!.prefix;
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
    const { inner } = this.data;
    c.fillStyle = this.theme.ground;
    for (const i of this.innerOf.get(task) ?? []) {
      if (inner.parent[i]! >= 0) continue;
      const from = this.times.from[task]! + inner.start[i]! / 1000;
      const a = this.x(from);
      const b = this.x(from + inner.duration[i]! / 1000);
      if (b - a >= 3) c.fillRect(a + 1, row.y + high - 2, b - a - 2, 1);
    }
  }

  private drawFlame(): void {
    const key = `${this.range.from} ${this.range.to} ${this.order}`;
    if (this.rootOf !== key) {
      this.rootOf = key;
      this.root = tree(this.data, this.times, this.stretches, this.range, this.order);
    }
    const above: Node[] = [];
    let node = this.root!;
    for (const name of this.zoomedTo) {
      const next = node.children.get(name);
      if (!next) break;
      above.push(node);
      node = next;
    }
    const width = this.flameElement.clientWidth;
    if (!width) return;
    this.flame = pieces(node, above, 1 / width);
    const depth = Math.max(...this.flame.map((p) => p.depth)) + 1;
    const height = depth * FLAME_ROW;
    this.flameCanvas.style.height = `${height}px`;
    const c = prepare(this.flameCanvas, width, height);
    c.font = this.theme.font;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    for (const p of this.flame) this.drawPiece(c, p, width, p.depth < above.length);
  }

  private drawPiece(c: CanvasRenderingContext2D, p: Piece, width: number, isAbove: boolean): void {
    const x = p.x * width;
    const w = Math.max(1, p.w * width - (p.w * width > 3 ? 1 : 0));
    const y = p.depth * FLAME_ROW;
    const plain = p.node.prefix < 0;
    c.globalAlpha = (this.lit >= 0 && !plain && p.node.prefix !== this.lit ? 0.15 : 1) * (isAbove ? 0.6 : 1);
    c.fillStyle = plain ? this.theme.grid : this.colour(p.node.prefix);
    c.fillRect(x, y, w, FLAME_ROW - 2);
    if (w > 24) {
      c.fillStyle = plain ? this.theme.text : this.theme.ground;
      c.globalAlpha = 1;
      c.fillText(fit(c, `${p.node.name}  ${format.duration(p.node.ms / 1000)}`, w - 8), x + 4, y + FLAME_ROW / 2 - 1);
    }
    c.globalAlpha = 1;
  }

  // For tests: the drawing as numbers.
  drawn() {
    const { key } = this.data.tasks;
    return {
      range: this.range,
      rows: this.rows.map((r) => ({
        worker: this.lanes[r.lane]!.worker,
        y: r.y,
        height: r.height,
        boxes: r.boxes.map((b) => ({ key: key[b.task]!, x: GUTTER + b.x, w: b.w, from: this.times.from[b.task]!, to: this.times.to[b.task]! })),
        bins: r.bins.map((b) => ({ x: GUTTER + b.x, busy: b.busy, tasks: b.tasks.length, prefix: this.data.prefixes[b.prefix]!.prefix })),
      })),
      stretches: this.stretches,
      flame: this.flame.map((p) => ({ path: [...p.path, p.node].map((n) => n.name), ms: p.node.ms, count: p.node.count, more: p.more, x: p.x, w: p.w })),
    };
  }
}

declare global {
  interface Window {
    report: Report;
  }
}

applyStored();
document.addEventListener('DOMContentLoaded', async () => {
  try {
    window.report = new Report(await unpacked());
  } catch (error) {
    document.body.append(h('main', {}, h('div', { class: 'empty' }, h('h2', {}, 'This report cannot be read'), h('p', {}, `${String(error)}. A browser of 2023 or later can.`))));
    return;
  }
  window.report.start();
});
