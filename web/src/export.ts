// Exports the visible data: a picture, a table, and the commands that print the same numbers.

import type { Chart } from './chart';
import type { Side } from './compare';
import { h } from './dom';
import type { Line } from './lines';
import { filterText, type Range } from './model';
import { commandLine, expression, plan } from './plan';
import type { Theme } from './theme';

export interface Scene {
  range: Range;
  filter: Record<string, string>;
  sides: Side[] | null;
  target: string; // the target for `sonde query`: a job, or the path of a recording
  title: string;
  theme: Theme;
}

// The buckets that begin in the range. The command names the same ones: it starts with the first of
// them, and ends a millisecond before the bucket after the last.
export function bucketsOf(range: Range, intervalMs: number): Range {
  const from = Math.ceil(range.from / intervalMs) * intervalMs;
  return { from, to: Math.max(from, Math.floor(range.to / intervalMs) * intervalMs) };
}

function within(line: Line, range: Range): number[] {
  return line.t.flatMap((t, i) => (t >= range.from && t <= range.to ? [i] : []));
}

const cell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
const number = (v: number) => (Number.isNaN(v) ? '' : String(v));

// RFC 4180; times are milliseconds since the epoch. A missing value is an empty cell.
export function csv(charts: { metric: { name: string }; lines: Line[]; intervalMs: number }[], range: Range): string {
  const rows = ['metric,tags,time_ms,mean,least,greatest'];
  for (const chart of charts)
    for (const line of chart.lines)
      for (const i of within(line, bucketsOf(range, chart.intervalMs)))
        rows.push(
          [cell(chart.metric.name), cell(filterText(line.tags)), String(line.t[i]), number(line.mean[i]!), number(line.low[i]!), number(line.high[i]!)].join(','),
        );
  return rows.join('\r\n') + '\r\n';
}

// The commands that print the drawn means (for a band, the medians).
export function commands(chart: Chart, scene: Scene): string[] {
  if (!chart.plan) return [];
  const { from, to } = bucketsOf(scene.range, chart.intervalMs);
  const sides: (Pick<Side, 'shift'> & { job: string })[] = scene.sides ?? [{ job: '', shift: 0 }];
  return sides.map(({ job, shift }) => {
    const filter = job ? { ...scene.filter, job } : scene.filter;
    const question = plan(chart.metric, chart.mode, chart.intervalMs, filter).questions[0]!;
    const start = Math.floor((from + shift) / chart.intervalMs) * chart.intervalMs;
    const end = Math.ceil((to + shift) / chart.intervalMs) * chart.intervalMs + chart.intervalMs - 1;
    return commandLine(expression(question), { from: start, to: end }, scene.target);
  });
}

const PAD = 12;
const HEAD = 18;

// One picture of all charts with their names, in the resolution of the screen.
export function picture(charts: Chart[], scene: Scene): Promise<Blob | null> {
  const ratio = window.devicePixelRatio || 1;
  const canvas = document.createElement('canvas');
  const width = Math.max(...charts.map((c) => c.canvas.width / ratio));
  const heights = charts.map((c) => HEAD + c.canvas.height / ratio + PAD);
  canvas.width = Math.round((width + 2 * PAD) * ratio);
  canvas.height = Math.round((HEAD + PAD + heights.reduce((a, b) => a + b, 0)) * ratio);
  const c = canvas.getContext('2d')!;
  c.scale(ratio, ratio);
  c.fillStyle = scene.theme.ground;
  c.fillRect(0, 0, canvas.width, canvas.height);
  c.font = scene.theme.font;
  c.fillStyle = scene.theme.quiet;
  c.fillText(scene.title, PAD, PAD + 4);
  let y = HEAD + PAD;
  charts.forEach((chart, i) => {
    c.fillStyle = scene.theme.text;
    c.fillText(chart.title(), PAD, y + 8);
    c.drawImage(chart.canvas, PAD, y + HEAD, chart.canvas.width / ratio, chart.canvas.height / ratio);
    y += heights[i]!;
  });
  return new Promise((done) => canvas.toBlob(done, 'image/png'));
}

function save(blob: Blob, name: string): void {
  const link = h('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  // The browser has taken over the data when the click has been handled.
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export class ExportDialog {
  readonly element = h('dialog', { 'aria-label': 'export', class: 'export' });
  private readonly which = h('select', { 'aria-label': 'charts to export' });
  private readonly lines = h('code', { class: 'commands', tabindex: '0', 'aria-label': 'command lines' });
  private charts: Chart[] = [];
  private scene: Scene | null = null;

  constructor(copy: (text: string) => void) {
    const button = (text: string, click: () => void) => h('button', { type: 'button', click }, text);
    this.element.append(
      h('h2', {}, 'Export the visible charts'),
      h('p', {}, this.which, button('PNG', () => void this.png()), button('CSV', () => this.csv())),
      h('p', {}, 'These lines print the same numbers:'),
      h('p', {}, this.lines),
      h('p', {}, button('copy lines', () => copy(this.lines.textContent ?? '')), button('close', () => this.element.close())),
    );
    this.which.addEventListener('change', () => this.update());
  }

  // `first`: the focused chart; null: all.
  open(charts: Chart[], first: Chart | null, scene: Scene): void {
    this.charts = charts;
    this.scene = scene;
    this.which.replaceChildren(h('option', { value: '' }, `all ${charts.length} visible charts`), ...charts.map((c) => h('option', { value: c.metric.name }, c.metric.name)));
    this.which.value = first && charts.includes(first) ? first.metric.name : '';
    this.update();
    this.element.showModal();
  }

  private chosen(): Chart[] {
    return this.which.value ? this.charts.filter((c) => c.metric.name === this.which.value) : this.charts;
  }

  private update(): void {
    this.lines.textContent = this.chosen()
      .flatMap((c) => commands(c, this.scene!))
      .join('\n');
  }

  private name(end: string): string {
    return `sonde-${this.which.value || 'charts'}.${end}`;
  }

  private csv(): void {
    save(new Blob([csv(this.chosen(), this.scene!.range)], { type: 'text/csv' }), this.name('csv'));
  }

  private async png(): Promise<void> {
    const charts = this.chosen();
    const blob = charts.length ? await picture(charts, this.scene!) : null;
    if (blob) save(blob, this.name('png'));
  }
}
