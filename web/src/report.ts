// The report of a Dask cluster's tasks: one file that is opened from disk and makes no requests.
// report_stream.ts and report_flame.ts draw what report_data.ts computes.

import { h, onBrush } from './dom';
import * as format from './format';
import { panned, zoomed } from './model';
import type { Range } from './model';
import { ORDERS } from './report_data';
import type { Order, Packed, Row } from './report_data';
import { FlameGraph } from './report_flame';
import { OWN_COLOURS, Scene } from './report_scene';
import { GUTTER, TaskStream } from './report_stream';
import { pieceTip, taskTip } from './report_tips';
import type { Tip } from './report_tips';
import { applyStored, readTheme, toggle } from './theme';

const LISTED = 200; // rows of the table
const ZOOM = 0.8;
const WHEEL = 0.0015;

async function unpacked(): Promise<Packed> {
  const text = document.getElementById('data')!.textContent!.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(stream).json()) as Packed;
}

export class Report {
  private readonly scene: Scene;
  private readonly stream: TaskStream;
  private readonly flame: FlameGraph;
  private pending = false;

  private readonly tip = h('div', { class: 'tip', role: 'status' });
  private readonly legend = h('div', { class: 'legend', role: 'group', 'aria-label': 'prefixes' });
  private readonly help = h('dialog', { 'aria-label': 'keys' });
  private readonly select = h('select', { 'aria-label': 'order' });

  constructor(data: Packed) {
    this.scene = new Scene(data);
    this.stream = new TaskStream(this.scene);
    this.flame = new FlameGraph(this.scene);
  }

  start(): void {
    document.title = `sonde: ${this.scene.data.title}`;
    document.body.append(this.header());
    const count = this.scene.times.from.length;
    if (!count) {
      document.body.append(h('main', {}, h('div', { class: 'empty' }, h('h2', {}, 'No tasks'), h('p', {}, 'The monitor recorded no task of this cluster.'))));
      return;
    }
    this.select.append(...ORDERS.map((o) => h('option', { value: o }, o)));
    this.select.addEventListener('change', () => {
      this.flame.order = this.select.value as Order;
      this.flame.zoomedTo = [];
      this.redraw();
    });
    this.stream.canvas.setAttribute('aria-label', `${count} tasks of ${this.scene.data.workers.length} workers; the table below sums them up`);
    this.flame.canvas.setAttribute('aria-label', 'where the time went; the table below has the sums');
    this.tip.hidden = true;
    document.body.append(
      h(
        'main',
        {},
        h('section', { 'aria-label': 'task stream' }, h('div', { class: 'bar' }, h('h2', {}, 'Task stream'), this.stream.about), this.legend, this.stream.element),
        h(
          'section',
          { 'aria-label': 'flame graph' },
          h('div', { class: 'bar' }, h('h2', {}, 'Where the time went'), this.select, h('span', { class: 'about' }, 'of the range above; a click on a box enlarges it')),
          this.flame.element,
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
    const { data } = this.scene;
    const n = this.scene.times.from.length;
    const failed = data.prefixes.reduce((s, p) => s + p.errors, 0);
    return h(
      'header',
      {},
      h('h1', {}, data.title),
      h('span', { class: 'level' }, data.cluster),
      h('span', {}, `${data.workers.length} ${data.workers.length === 1 ? 'worker' : 'workers'}`),
      h('span', {}, `${n.toLocaleString('en')} ${n === 1 ? 'task' : 'tasks'}`),
      failed ? h('span', { class: 'alarm' }, `${failed} failed`) : null,
      h('span', { class: 'points' }, `${format.clock(this.scene.whole.from, 1000, true)}, ${format.duration((this.scene.whole.to - this.scene.whole.from) / 1000)}`),
      h(
        'div',
        { class: 'controls' },
        h('button', { type: 'button', click: () => this.show(this.scene.whole) }, 'everything'),
        h('button', { type: 'button', click: () => this.switchTheme() }, 'dark or light'),
        h('button', { type: 'button', click: () => this.help.showModal() }, 'keys'),
      ),
    );
  }

  private makeLegend(): void {
    const { prefixes } = this.scene.data;
    const entry = (text: string, prefix: number) =>
      h(
        'button',
        { type: 'button', 'aria-pressed': 'false', 'data-prefix': String(prefix), title: text, click: () => this.light(prefix) },
        h('span', { class: `swatch colour-${this.scene.colourIndex(prefix)}` }),
        text,
      );
    this.legend.append(...prefixes.slice(0, OWN_COLOURS).map((p, i) => entry(p.prefix, i)));
    if (prefixes.length === OWN_COLOURS + 1) this.legend.append(entry(prefixes[OWN_COLOURS]!.prefix, OWN_COLOURS));
    else if (prefixes.length > OWN_COLOURS)
      this.legend.append(h('span', { class: 'about' }, h('span', { class: `swatch colour-${OWN_COLOURS}` }), `${prefixes.length - OWN_COLOURS} more, in the table below`));
  }

  private light(prefix: number): void {
    this.scene.lit = this.scene.lit === prefix ? -1 : prefix;
    for (const button of document.querySelectorAll<HTMLElement>('[data-prefix]'))
      button.setAttribute('aria-pressed', String(Number(button.dataset.prefix) === this.scene.lit));
    this.redraw();
  }

  private table(): HTMLElement {
    const rows = this.scene.data.prefixes;
    const heads = ['prefix', 'tasks', 'total', 'mean', 'p95', 'output', 'errors', 'unfinished'];
    const seconds = (s: number | null) => (s === null ? format.MISSING : format.duration(s));
    const row = (r: Row, i: number) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row', title: r.prefix }, h('span', { class: `swatch colour-${this.scene.colourIndex(i)}` }), r.prefix),
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
    const at = (x: number) => this.scene.range.from + ((x - GUTTER) / this.stream.width()) * (this.scene.range.to - this.scene.range.from);
    this.stream.canvas.addEventListener('pointermove', (e) => {
      const tip = this.stream.tipAt(e.offsetX, e.offsetY);
      if (tip) this.showTip(tip, e.clientX, e.clientY);
      else this.hideTip();
    });
    this.stream.canvas.addEventListener('pointerleave', () => this.hideTip());
    this.stream.canvas.addEventListener(
      'wheel',
      (e) => {
        if (e.ctrlKey || e.offsetX < GUTTER) return;
        e.preventDefault();
        const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : e.shiftKey ? e.deltaY : 0;
        if (sideways) this.show(panned(this.scene.range, sideways / this.stream.width(), this.scene.whole));
        else this.show(zoomed(this.scene.range, Math.exp(e.deltaY * WHEEL), Math.max(0, (e.offsetX - GUTTER) / this.stream.width()), this.scene.whole));
      },
      { passive: false },
    );
    onBrush(
      this.stream.canvas,
      (a, b) => {
        this.scene.brush = { from: at(a), to: at(b) };
        this.redraw();
      },
      (a, b) => this.show({ from: Math.max(this.scene.range.from, at(a)), to: Math.min(this.scene.range.to, at(b)) }),
      () => {
        this.scene.brush = null;
        this.redraw();
      },
    );
    this.flame.canvas.addEventListener('pointermove', (e) => {
      const piece = this.flame.pieceAt(e.offsetX, e.offsetY);
      if (piece) this.showTip(pieceTip(piece), e.clientX, e.clientY);
      else this.hideTip();
    });
    this.flame.canvas.addEventListener('pointerleave', () => this.hideTip());
    this.flame.canvas.addEventListener('click', (e) => {
      const piece = this.flame.pieceAt(e.offsetX, e.offsetY);
      if (!piece || piece.more > 1) return;
      this.flame.zoomedTo = [...piece.path, piece.node].slice(1).map((n) => n.name);
      this.redraw();
    });
    document.addEventListener('keydown', (e) => this.key(e));
    window.addEventListener('resize', () => this.redraw());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  private key(e: KeyboardEvent): void {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || this.help.open || target.tagName === 'SELECT') return;
    const centre = this.scene.chosenTask();
    const around = centre === undefined ? 0.5 : Math.min(1, Math.max(0, (this.scene.times.from[centre]! - this.scene.range.from) / (this.scene.range.to - this.scene.range.from)));
    const actions: Record<string, () => void> = {
      h: () => this.show(panned(this.scene.range, -0.25, this.scene.whole)),
      l: () => this.show(panned(this.scene.range, 0.25, this.scene.whole)),
      '+': () => this.show(zoomed(this.scene.range, ZOOM, around, this.scene.whole)),
      '-': () => this.show(zoomed(this.scene.range, 1 / ZOOM, around, this.scene.whole)),
      '0': () => this.show(this.scene.whole),
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
    if (!action || ((e.key === 'ArrowUp' || e.key === 'ArrowDown') && target !== this.stream.canvas)) return;
    e.preventDefault();
    action();
  }

  private switchTheme(): void {
    toggle();
    this.redraw();
  }

  private leave(): void {
    if (this.scene.chosen) this.scene.chosen = null;
    else if (this.flame.zoomedTo.length) this.flame.zoomedTo = [];
    else if (this.scene.lit >= 0) return this.light(this.scene.lit);
    this.hideTip();
    this.redraw();
  }

  show(range: Range): void {
    this.scene.brush = null;
    if (range.to > range.from) this.scene.range = range;
    this.hideTip();
    this.redraw();
  }

  // Selects the next task of a thread, or the task of another thread at that time, and announces
  // it.
  private choose(lanesOn: number, tasksOn: number): void {
    const before = this.scene.chosenTask();
    const t = before === undefined ? this.scene.range.from : this.scene.times.from[before]!;
    const count = this.scene.lanes.length;
    let lane = this.scene.chosen?.lane ?? (lanesOn < 0 ? count : lanesOn > 0 ? -1 : 0);
    if (lanesOn || !this.scene.lanes[lane]!.tasks.length)
      for (let tried = 0; tried < count; tried++) {
        lane = (lane + (lanesOn || 1) + count) % count;
        if (this.scene.lanes[lane]!.tasks.length) break;
      }
    const tasks = this.scene.lanes[lane]!.tasks;
    const same = this.scene.chosen?.lane === lane;
    const next = tasks.findIndex((i) => this.scene.times.to[i]! >= t);
    const at = same ? this.scene.chosen!.at + tasksOn : next < 0 ? tasks.length - 1 : next;
    this.scene.chosen = { lane, at: Math.min(tasks.length - 1, Math.max(0, at)) };
    const task = this.scene.chosenTask()!;
    const { from, to } = this.scene.range;
    if (this.scene.times.to[task]! < from || this.scene.times.from[task]! > to)
      this.scene.range = panned(this.scene.range, (this.scene.times.from[task]! - (from + to) / 2) / (to - from), this.scene.whole);
    this.draw();
    const row = this.stream.rows[lane]!;
    const box = this.stream.canvas.getBoundingClientRect();
    this.showTip(taskTip(this.scene, task), box.left + this.stream.x(this.scene.times.from[task]!), box.top + row.y + row.height);
  }

  // ---- the tooltip

  private showTip([title, lines]: Tip, clientX: number, clientY: number): void {
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

  private redraw(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw(): void {
    this.scene.theme = readTheme();
    this.stream.draw();
    this.flame.draw();
  }

  // For tests: the drawing as numbers.
  drawn() {
    const { key } = this.scene.data.tasks;
    return {
      range: this.scene.range,
      rows: this.stream.rows.map((r) => ({
        worker: this.scene.lanes[r.lane]!.worker,
        y: r.y,
        height: r.height,
        boxes: r.boxes.map((b) => ({ key: key[b.task]!, x: GUTTER + b.x, w: b.w, from: this.scene.times.from[b.task]!, to: this.scene.times.to[b.task]! })),
        bins: r.bins.map((b) => ({ x: GUTTER + b.x, busy: b.busy, tasks: b.tasks.length, prefix: this.scene.data.prefixes[b.prefix]!.prefix })),
      })),
      stretches: this.scene.stretches,
      flame: this.flame.pieces.map((p) => ({ path: [...p.path, p.node].map((n) => n.name), ms: p.node.ms, count: p.node.count, more: p.more, x: p.x, w: p.w })),
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
