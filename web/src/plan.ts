// Which questions draw a chart. The server downsamples to about one bucket every two pixels, and gives
// the least and the greatest of each bucket beside its mean: no peak is lost, however long the range.
//
//   few series    none:I-avg, none:I-min, none:I-max        a line and its spread, each
//   many          p50:I-avg, min:I-min, max:I-max           the band of all of them, and their median
//   a counter     none:I-last:rate, or p50, min and max     the change per second, bucket by bucket

import type { Metric } from './api';
import type { Range } from './model';

export const LINES_MAX = 8; // series that are drawn as lines of their own; more become a band
export const LINES_ASKED_MAX = 64; // … when a person asks for all lines

// Buckets begin at whole multiples of the interval, and the interval is one that OpenTSDB can write.
const INTERVALS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3,
  7200e3, 10800e3, 21600e3, 43200e3, 86400e3,
];

export function interval(widthMs: number, pixels: number): number {
  const buckets = Math.max(20, Math.floor(pixels / 2));
  return INTERVALS_MS.find((i) => widthMs / i <= buckets) ?? 86400e3;
}

export function intervalText(ms: number): string {
  if (ms % 3600e3 === 0) return `${ms / 3600e3}h`;
  if (ms % 60e3 === 0) return `${ms / 60e3}m`;
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

// From a whole bucket to a whole bucket: the engine leaves out a bucket that begins before the start.
export function aligned(range: Range, intervalMs: number): Range {
  return { from: Math.floor(range.from / intervalMs) * intervalMs, to: range.to };
}

// What stands in braces: values in quotes are not known to the grammar, so odd ones are refused.
export function braces(filter: Record<string, string>): string {
  const parts = Object.entries(filter)
    .filter(([key, value]) => key && value && !/[{}(),=|*]/.test(key + value))
    .map(([key, value]) => `${key}=literal_or(${value})`);
  return parts.length ? `{}{${parts.join(',')}}` : '';
}

export type Mode = 'lines' | 'band';

export interface Plan {
  mode: Mode;
  expressions: string[]; // mean or median, least, greatest; of lines of a counter only the first
}

export function plan(metric: Pick<Metric, 'name' | 'kind'>, mode: Mode, intervalMs: number, filter: Record<string, string>): Plan {
  const i = intervalText(intervalMs);
  const name = metric.name + braces(filter);
  if (metric.kind === 'counter') {
    const rate = (aggregator: string) => `${aggregator}:${i}-last:rate{dropcounter}:${name}`;
    return { mode, expressions: mode === 'lines' ? [rate('none')] : [rate('p50'), rate('min'), rate('max')] };
  }
  return mode === 'lines'
    ? { mode, expressions: [`none:${i}-avg:${name}`, `none:${i}-min:${name}`, `none:${i}-max:${name}`] }
    : { mode, expressions: [`p50:${i}-avg:${name}`, `min:${i}-min:${name}`, `max:${i}-max:${name}`] };
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

// The line that gives the same numbers on the command line. `target`: a job, or the path of a recording.
export function commandLine(expression: string, range: Range, target: string): string {
  const times = ` --start ${Math.floor(range.from)}ms --end ${Math.ceil(range.to)}ms`;
  return `sonde query '${expression.replace(/'/g, `'\\''`)}'${times}${target ? ` ${quoted(target)}` : ''}`;
}
