// The queries for a chart. The server downsamples to about one bucket every two pixels, and returns
// the minimum and the maximum of each bucket beside its mean, so no peak is lost, however long the
// range is.
//
//   few series   none:I-avg, none:I-min, none:I-max      a line and its spread, each
//   many         p50:I-avg, min:I-min, max:I-max         the band of all of them, and their median;
//                p25:I-avg, p75:I-avg                    the quartiles, if there are few nodes
//   a counter    none:I-last:rate, or p50, min and max   the change per second, bucket by bucket

import type { Metric } from './source';
import type { Range } from './model';

export const LINES_MAX = 8; // series that are drawn as single lines; more become a band
export const LINES_ASKED_MAX = 64; // … if the user requests all lines

// Buckets begin at whole multiples of the interval, and the interval is one that OpenTSDB can
// write.
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

// Extends the range to whole buckets, because the engine leaves out a bucket that begins before the
// start.
export function aligned(range: Range, intervalMs: number): Range {
  return { from: Math.floor(range.from / intervalMs) * intervalMs, to: range.to };
}

// One query: series of a metric, in buckets. Its text is sonde's m= expression.
export interface Question {
  metric: string;
  // over series; 'none': each of them
  aggregator: 'none' | 'p25' | 'p50' | 'p75' | 'min' | 'max' | 'avg' | 'sum';
  intervalMs: number;
  downsample: 'avg' | 'min' | 'max' | 'last';
  rate: boolean; // the change per second, without restarts of a counter
  by: string[]; // tags that group the series
  filter: Record<string, string>; // tags that every series must have
}

// The grammar has no quoted values, so values with special characters are refused.
export function braceable(filter: Record<string, string>): [string, string][] {
  return Object.entries(filter).filter(([key, value]) => key && value && !/[{}(),=|*]/.test(key + value));
}

export function expression(q: Question): string {
  const filter = braceable(q.filter).map(([key, value]) => `${key}=literal_or(${value})`);
  const groups = q.by.map((key) => `${key}=*`).join(',');
  const braces = filter.length ? `{${groups}}{${filter.join(',')}}` : groups && `{${groups}}`;
  return `${q.aggregator}:${intervalText(q.intervalMs)}-${q.downsample}:${q.rate ? 'rate{dropcounter}:' : ''}${q.metric}${braces}`;
}

export type Mode = 'lines' | 'band';

export interface Plan {
  mode: Mode;
  // mean or median, minimum, maximum, and for a band perhaps the quartiles; for lines of a counter
  // only the first
  questions: Question[];
}

type Measured = Pick<Metric, 'name' | 'kind'>;

// `quartiles`: a band has them.
export function plan(metric: Measured, mode: Mode, intervalMs: number, filter: Record<string, string>, quartiles = false): Plan {
  const all = { metric: metric.name, intervalMs, by: [], filter };
  const band: Question['aggregator'][] = ['p50', 'min', 'max', ...(quartiles ? (['p25', 'p75'] as const) : [])];
  const aggregators = mode === 'lines' ? (['none', 'none', 'none'] as const) : band;
  if (metric.kind === 'counter') {
    const rate = (aggregator: Question['aggregator']): Question => ({ ...all, aggregator, downsample: 'last', rate: true });
    return { mode, questions: (mode === 'lines' ? aggregators.slice(0, 1) : aggregators).map(rate) };
  }
  const downsamples = ['avg', 'min', 'max', 'avg', 'avg'] as const;
  return { mode, questions: aggregators.map((aggregator, i) => ({ ...all, aggregator, downsample: downsamples[i]!, rate: false })) };
}

// A row for each node: the mean of a gauge over the node's series, the sum of a counter's rates.
export function nodesQuestion(metric: Measured, intervalMs: number, filter: Record<string, string>): Question {
  const all = { metric: metric.name, intervalMs, by: ['host'], filter };
  return metric.kind === 'counter'
    ? { ...all, aggregator: 'sum', downsample: 'last', rate: true }
    : { ...all, aggregator: 'avg', downsample: 'avg', rate: false };
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

// The command that prints the same numbers. `target`: a job, or the path of a recording.
export function commandLine(expression: string, range: Range, target: string): string {
  const times = ` --start ${Math.floor(range.from)}ms --end ${Math.ceil(range.to)}ms`;
  return `sonde query '${expression.replace(/'/g, `'\\''`)}'${times}${target ? ` ${quoted(target)}` : ''}`;
}
