// The first line: the job, its state, its nodes; and the controls.

import type { Job } from './job';
import type { Run } from './source';
import { h, say } from './dom';
import * as format from './format';

export type State = { text: string; kind: 'live' | 'good' | 'bad' | 'quiet' };

// The state of the job: from its own exit code if known, else from the recording.
export function stateOf(run: Run | undefined, live: boolean, empty = false): State {
  if (run?.end_ns !== undefined) {
    const code = run.exit_code ?? 0;
    return code === 0 ? { text: 'ended, exit code 0', kind: 'good' } : { text: `ended, exit code ${code}`, kind: 'bad' };
  }
  if (empty && !live) return { text: 'waiting for data', kind: 'quiet' };
  return live ? { text: 'running', kind: 'live' } : { text: 'recording', kind: 'quiet' };
}

export class Header {
  readonly element: HTMLElement;
  private readonly parts: Record<string, HTMLElement> = {};

  constructor(controls: HTMLElement) {
    const part = (name: string, tag: 'span' | 'h1' | 'code' = 'span') => (this.parts[name] = h(tag, { class: name }));
    this.element = h(
      'header',
      {},
      part('job', 'h1'),
      part('command', 'code'),
      part('state'),
      part('elapsed'),
      part('restarts'),
      part('nodes'),
      part('missing'),
      part('level'),
      part('points'),
      part('dropped'),
      controls,
    );
  }

  // `restarts`: how often the command was started again.
  update(f: Job, now: number, restarts: number): void {
    const { status, nodes } = f;
    if (!status) return;
    const runs = status.runs;
    const jobs = [...new Set(nodes.map((n) => n.job))].filter(Boolean);
    const job = status.job || (jobs.length === 1 ? jobs[0]! : jobs.length ? `${jobs.length} jobs` : 'sonde');
    const run = runs.length === 1 ? runs[0] : runs.find((r) => r.job === job);
    const state = stateOf(run, f.live, !nodes.length);
    say(this.parts.job!, job);
    say(this.parts.command!, run?.command ?? '');
    this.parts.command!.title = run?.command ?? '';
    say(this.parts.state!, state.text);
    this.parts.state!.dataset.kind = state.kind;
    const start = run ? run.start_ns : f.first;
    const end = run?.end_ns ?? (f.live ? now * 1e6 : f.last);
    say(this.parts.elapsed!, start && end ? format.duration(Math.max(0, (end - start) / 1e9)) : '');
    say(this.parts.restarts!, restarts ? `${restarts} restart${restarts > 1 ? 's' : ''}` : '');
    const missing = status.missing ?? [];
    const all = new Set([...nodes.map((n) => n.host), ...missing]).size;
    say(
      this.parts.nodes!,
      missing.length ? `${all - missing.length} of ${all} nodes` : all === 1 ? (nodes[0]?.host ?? '1 node') : all ? `${all} nodes` : '',
    );
    say(
      this.parts.missing!,
      missing.length ? `missing: ${missing.slice(0, 5).join(', ')}${missing.length > 5 ? ` and ${missing.length - 5} more` : ''}` : '',
    );
    const level = status.level || run?.level || 0;
    say(this.parts.level!, level ? `level ${level}` : '');
    // The server counts only the points of its own files: with many nodes, it knows only the number
    // of series.
    if (status.hub?.nodes.length) say(this.parts.points!, `${format.count(nodes.reduce((sum, n) => sum + n.series, 0))} series`);
    else say(this.parts.points!, f.live ? `${format.count(f.pointsPerSecond)} points/s` : `${format.count(status.points)} points`);
    say(this.parts.dropped!, `${format.count(f.dropped)} dropped`);
    this.parts.dropped!.classList.toggle('alarm', f.dropped > 0);
    const title = `${job} · ${state.text}`;
    if (document.title !== title) document.title = title;
  }
}
