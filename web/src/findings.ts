// Findings in sentences: members that the server reports as slow or silent, and problems that the
// page sees itself (a missing node, dropped points). Worst first, three lines, the rest after a
// click.

import type { Job } from './job';
import type { FindingAnswer } from './source';
import { h } from './dom';
import * as format from './format';
import type { Range } from './model';

export interface Finding {
  text: string;
  from: number; // milliseconds; the marked range
  to: number;
  metric?: string; // the chart that shows it
  span?: string;
  host?: string; // the node of the problem
  tags: Record<string, string>;
  now: boolean; // the finding still holds
}

const LINES = 3;

// "rank 3 on n2", "gpu 1 on n2", "n2": the tags as text for people.
export function memberText(tags: Record<string, string>): string {
  const { host, uuid: _uuid, job: _job, ...rest } = tags;
  const own = Object.entries(rest).map(([k, v]) => `${k} ${v}`);
  if (!own.length) return host ?? 'a member';
  return own.join(', ') + (host ? ` on ${host}` : '');
}

// The run of a finding, and its times: those of a compared run are shifted, and count from the
// start.
export interface Place {
  job: string; // name of the run if there are several; '': there is only one
  shift: number;
  clock(t: number): string;
}

function slowOrSilent(f: FindingAnswer, place: Place): Finding {
  const from = f.since_ns / 1e6 - place.shift;
  const to = f.until_ns / 1e6 - place.shift;
  const now = f.state !== 'was slow';
  const what = f.metric ?? `the span ${f.span}`;
  const when = now ? `since ${place.clock(from)}` : `from ${place.clock(from)} to ${place.clock(to)}`;
  const who = memberText(f.tags) + (place.job ? ` of ${place.job}` : '');
  const than = f.against === 'others' ? 'the others' : 'its own best';
  return {
    text:
      f.state === 'silent'
        ? `${who} has given no value of ${what} ${when}: it has ${f.values} values, the others at least ${f.others}`
        : `${who} ${now ? 'is' : 'was'} ${format.value(f.factor, '')} times as slow as ${than} in ${what}, ${when}`,
    from,
    to,
    metric: f.metric,
    span: f.span,
    host: f.tags.host,
    tags: f.tags,
    now,
  };
}

// The problems that the page sees without requesting findings.
export function seen(s: Job, whole: Range): Finding[] {
  const all: Finding[] = [];
  const add = (text: string, from: number, more: Partial<Finding> = {}) => all.push({ text, from, to: whole.to, tags: {}, now: true, ...more });
  for (const host of s.status?.missing ?? []) {
    const last = s.lastOf.get(host);
    add(`${host} is missing${last === undefined ? '' : `: nothing of it since ${format.clock(last)}`}`, last ?? whole.from, { host });
  }
  for (const node of s.nodes)
    if (node.state === 'crashed' && !s.status?.missing?.includes(node.host) && node.last_ns !== undefined)
      add(`the recording of ${node.host} ends at ${format.clock(node.last_ns / 1e6)} without its agent having closed it`, node.last_ns / 1e6, { host: node.host });
  if (s.dropped > 0)
    add(`${format.count(s.dropped)} points were dropped, because a program emitted faster than its buffers were read`, whole.from, { metric: 'sonde_dropped_total' });
  return all;
}

// `placeOf` returns null if a finding is not shown.
export function all(s: Job, whole: Range, answers: FindingAnswer[], placeOf: (job: string) => Place | null): Finding[] {
  const slows = answers.flatMap((f) => {
    const place = placeOf(f.job ?? '');
    return place ? [slowOrSilent(f, place)] : [];
  });
  return [...seen(s, whole), ...slows];
}

export class FindingStrip {
  readonly element = h('section', { class: 'findings', 'aria-label': 'findings', hidden: true });
  private open = false;
  private shown = '';

  constructor(private readonly go: (f: Finding) => void) {}

  // `compared`: the number of measures that the server compared; null: no answer yet.
  update(findings: Finding[], compared: number | null): void {
    this.element.hidden = compared === null && !findings.length;
    const key = JSON.stringify([findings, compared, this.open]);
    if (key === this.shown) return;
    this.shown = key;
    const focused = [...this.element.querySelectorAll('button')].indexOf(document.activeElement as HTMLButtonElement);
    const lines = this.open ? findings : findings.slice(0, LINES);
    const line = (f: Finding) => h('li', {}, h('button', { type: 'button', class: f.now ? 'now' : 'past', click: () => this.go(f) }, f.text));
    const more = findings.length - LINES;
    this.element.replaceChildren(
      findings.length
        ? h('ul', {}, ...lines.map(line))
        : h('p', {}, compared ? `Nothing unusual so far; compared ${compared === 1 ? '1 measure' : `${compared} measures`} of time.` : 'Nothing unusual so far.'),
    );
    if (more > 0)
      this.element.append(
        h('button', { type: 'button', class: 'more', 'aria-expanded': String(this.open), click: () => this.toggle(findings, compared) }, this.open ? 'fewer' : `${more} more`),
      );
    if (focused >= 0) this.element.querySelectorAll('button')[focused]?.focus();
  }

  private toggle(findings: Finding[], compared: number | null): void {
    this.open = !this.open;
    this.update(findings, compared);
  }
}
