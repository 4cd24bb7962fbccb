// Findings and annotations as marks in time, and their texts.

import type { Finding } from './findings';
import * as format from './format';
import type { Annotation } from './source';

export interface Mark {
  t: number; // milliseconds
  text: string;
}

// The number of the restart that begins here, as the launcher annotates it; 0: this is no restart.
export function restartOf(note: Annotation): number {
  const attempt = note.tags.attempt;
  return attempt !== undefined && note.tags.nodes !== undefined && /^\d+$/.test(attempt) ? Number(attempt) : 0;
}

export function annotationText(note: Annotation): string {
  const tags = Object.entries(note.tags).map(([k, v]) => `${k}=${v}`);
  return [format.clock(note.t_ns / 1e6), note.text, ...tags].join('  ');
}

// The annotation at most `near` milliseconds from `t`; '' without one.
export function annotationAt(all: Annotation[], t: number, near: number): string {
  const note = all.find((a) => Math.abs(a.t_ns / 1e6 - t) < near);
  return note ? annotationText(note) : '';
}

// The next mark after `t` (`by` is 1), or before it (-1).
export function nextMark(annotations: Annotation[], findings: Finding[], t: number, by: number): Mark | undefined {
  return [
    ...annotations.map((a) => ({ t: a.t_ns / 1e6, text: annotationText(a) })),
    ...findings.map((f) => ({ t: f.from, text: f.text })),
  ]
    .sort((a, b) => (a.t - b.t) * by)
    .find((m) => (m.t - t) * by > 0.001);
}
