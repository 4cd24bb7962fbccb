// Compares two runs, each from its start. Times of the second one are shown as times of the first.

import type { Node, Status } from './source';
import { h, say } from './dom';
import type { Line } from './lines';
import type { Range } from './model';

export interface Side extends Run {
  shift: number; // the offset of its times to those of the first: subtracted for display
}

// A run in the data.
export interface Run {
  job: string;
  from: number; // milliseconds: the start of the run
  to: number; // the newest point of the run
  live: boolean; // the job is running
}

// The runs in the data, the oldest first; runs without points cannot be shown.
export function runsOf(nodes: Node[], status: Status | null): Run[] {
  const by = new Map<string, Run>();
  for (const n of nodes) {
    if (!n.job || n.first_ns === undefined || n.last_ns === undefined) continue;
    const run = by.get(n.job) ?? { job: n.job, from: Infinity, to: -Infinity, live: false };
    by.set(n.job, run);
    run.live ||= n.state === 'live';
    run.from = Math.min(run.from, n.first_ns / 1e6);
    run.to = Math.max(run.to, n.last_ns / 1e6);
  }
  const runs = [...by.values()];
  // Uses the starts of the commands if all are known, because the agents' first samples are a
  // little earlier.
  const starts = runs.map((r) => status?.runs.find((s) => s.job === r.job)?.start_ns);
  if (starts.every((s) => s !== undefined)) runs.forEach((r, i) => (r.from = Math.min(r.to, starts[i]! / 1e6)));
  return runs.sort((a, b) => a.from - b.from || a.job.localeCompare(b.job));
}

// null: they are not two of these runs.
export function sidesOf(names: string[], runs: Run[]): Side[] | null {
  const found = names.map((name) => runs.find((r) => r.job === name));
  const first = found[0];
  if (names.length !== 2 || !first || !found[1]) return null;
  return found.map((r) => ({ ...r!, shift: r!.from - first.from }));
}

// From the start to the end of the longer run, in times of the first.
export function wholeOf(sides: Side[]): Range {
  const from = sides[0]!.from;
  return { from, to: Math.max(from + 1, ...sides.map((s) => s.to - s.shift)) };
}

// The lines of a side, in times of the first, with its job as a tag.
export function moved(lines: Line[], side: Side): Line[] {
  return lines.map((l) => ({ ...l, key: `job=${side.job}${l.key ? ',' : ''}${l.key}`, tags: { job: side.job, ...l.tags }, t: l.t.map((t) => t - side.shift) }));
}

export class CompareBar {
  readonly element: HTMLElement;
  private readonly selects = [0, 1].map((i) => h('select', { 'aria-label': i ? 'second run' : 'first run' }));
  private readonly toggle = h('button', { type: 'button' }, 'compare');
  private names = '';

  constructor(private readonly choose: (jobs: string[]) => void) {
    this.element = h(
      'section',
      { class: 'compare', 'aria-label': 'compare two runs', hidden: true },
      ...this.selects.map((s, i) => h('span', { class: `run run-${i}` }, h('span', { class: 'swatch', 'aria-hidden': 'true' }), s)),
      this.toggle,
    );
    for (const s of this.selects) s.addEventListener('change', () => this.choose(this.selects.map((x) => x.value)));
  }

  update(runs: { job: string }[], sides: Side[] | null): void {
    this.element.hidden = runs.length < 2;
    if (runs.length < 2) return;
    const names = runs.map((r) => r.job).join('\n');
    if (names !== this.names) {
      this.names = names;
      this.selects.forEach((s, i) => {
        s.replaceChildren(...runs.map((r) => h('option', { value: r.job }, r.job)));
        s.selectedIndex = runs.length - 2 + i;
      });
    }
    this.element.classList.toggle('on', sides !== null);
    if (sides) this.selects.forEach((s, i) => (s.value = sides[i]!.job));
    say(this.toggle, sides ? 'end comparison' : 'compare from their start');
    this.toggle.onclick = () => this.choose(sides ? [] : this.selects.map((x) => x.value));
  }

  // The key: starts the comparison of the selected runs, or ends it.
  press(): void {
    if (!this.element.hidden) this.toggle.click();
  }
}
