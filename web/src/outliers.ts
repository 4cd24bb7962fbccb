// The series of a band that lie far from the others: which they are, and their lines.
//
//   choice   none:I-avg of the metric in about four buckets: a mean for each series. Far is six
//            robust deviations from the median; the three farthest are taken. 1,000 series: some
//            100 KB before gzip, once a minute live.
//   lines    none:I-avg of each chosen series, in the chart's buckets: one request for a chart, to
//            its nodes only.

import type { Chart } from './chart';
import type { Column } from './columns';
import { dropPartial, Line, lines } from './lines';
import type { Loader, Situation } from './loader';
import { aligned, braceable, interval, plan, type Question } from './plan';
import type { Source } from './source';

export const OUTLIERS_MAX = 3;
const SERIES_MIN = 9; // fewer are drawn as lines
const SERIES_MAX = 2000; // a choice among more would transfer too many bytes
const FAR = 6; // robust standard deviations
// the median absolute deviation of normal noise, per standard deviation
const MAD_OF_NORMAL = 0.6745;
const SPREAD_LEAST = 0.01; // of the median: nearly equal values have no outliers
const CHOICE_MS = 60000; // between two choices of a live chart
const LINES_MOST_MS = 15000; // between two requests for the lines of a live chart
const LINES_LEAST_MS = 2000;

function median(values: number[]): number {
  const sorted = values.slice().sort((a, b) => a - b);
  const n = sorted.length;
  return n ? (sorted[(n - 1) >> 1]! + sorted[n >> 1]!) / 2 : NaN;
}

// Indices of the values that are far from the median, farthest first.
export function farthest(values: number[], most = OUTLIERS_MAX): number[] {
  const known = values.filter((v) => Number.isFinite(v));
  if (known.length < SERIES_MIN) return [];
  const middle = median(known);
  const spread = median(known.map((v) => Math.abs(v - middle))) / MAD_OF_NORMAL;
  const far = FAR * Math.max(spread, SPREAD_LEAST * Math.abs(middle));
  const distance = (i: number) => Math.abs(values[i]! - middle);
  return values
    .map((_, i) => i)
    .filter((i) => Number.isFinite(values[i]!) && distance(i) > far)
    .sort((a, b) => distance(b) - distance(a))
    .slice(0, most);
}

export function meanOf(column: Column): number {
  const known = Array.from(column.v).filter((v) => !Number.isNaN(v));
  return known.length ? known.reduce((sum, v) => sum + v, 0) / known.length : NaN;
}

interface State {
  key: string; // identifies the query and the range of the choice
  chosenAt: number; // milliseconds of Date.now()
  linesAt: number;
  tags: Record<string, string>[];
  busy: boolean;
}

export class OutliersData {
  private readonly states = new WeakMap<Chart, State>();

  constructor(
    private readonly source: Source,
    private readonly loader: Loader,
    private readonly changed: (chart: Chart) => void,
  ) {}

  // Requests the outliers of these charts that are due.
  async load(charts: Iterable<Chart>, s: Situation): Promise<void> {
    await Promise.all([...charts].map((chart) => this.loadOne(chart, s)));
  }

  private async loadOne(chart: Chart, s: Situation): Promise<void> {
    const wanted = chart.mode === 'band' && !s.sides && chart.asked && chart.sourceSeries >= SERIES_MIN && chart.sourceSeries <= SERIES_MAX;
    if (!wanted) return this.show(chart, []);
    const range = aligned(s.range, chart.intervalMs);
    const key = JSON.stringify([chart.intervalMs, s.filter, s.follows ? 'live' : range]);
    let state = this.states.get(chart);
    if (!state || state.key !== key) this.states.set(chart, (state = { key, chosenAt: -Infinity, linesAt: -Infinity, tags: [], busy: false }));
    if (state.busy) return;
    state.busy = true;
    const now = Date.now();
    if (now - state.chosenAt >= (s.follows ? CHOICE_MS : Infinity) || state.chosenAt === -Infinity) {
      const tags = await this.choose(chart, s);
      if (tags) {
        state.tags = tags;
        state.chosenAt = now;
        state.linesAt = -Infinity;
      }
    }
    const pause = s.follows ? Math.min(LINES_MOST_MS, Math.max(LINES_LEAST_MS, chart.intervalMs / 2)) : Infinity;
    if (state.linesAt === -Infinity || now - state.linesAt >= pause) {
      const found = state.tags.length ? await this.lines(chart, s, state.tags, range.from) : [];
      if (found && this.states.get(chart) === state) {
        state.linesAt = now;
        this.show(chart, found);
      }
    }
    state.busy = false;
  }

  private show(chart: Chart, found: Line[]): void {
    if (!found.length && !chart.outliers.length) return;
    chart.setOutliers(found);
    this.changed(chart);
  }

  private question(chart: Chart, intervalMs: number, filter: Record<string, string>): Question {
    return plan(chart.metric, 'lines', intervalMs, filter).questions[0]!;
  }

  private async choose(chart: Chart, s: Situation): Promise<Record<string, string>[] | undefined> {
    const width = s.range.to - s.range.from;
    const i = interval(5 * width, 0); // 20 buckets for five times the width
    const { from, to } = aligned(s.range, i);
    const columns = await this.loader.guarded(() => this.source.query([this.question(chart, i, s.filter)], from, to));
    return columns && farthest(columns.map(meanOf)).map((at) => columns[at]!.tags);
  }

  private async lines(chart: Chart, s: Situation, all: Record<string, string>[], from: number): Promise<Line[] | undefined> {
    const questions = all.map((tags) => this.question(chart, chart.intervalMs, { ...s.filter, ...tags }));
    // Leaves out lines with a tag that no expression can name: their queries would select other
    // series, too.
    const sound = questions.filter((_, i) => braceable(all[i]!).length === Object.keys(all[i]!).length);
    const columns = sound.length ? await this.loader.guarded(() => this.source.query(sound, from, s.range.to)) : [];
    if (!columns) return undefined;
    const found = sound.flatMap((_, q) => lines(columns.filter((c) => c.query === q).map((c) => ({ ...c, query: 0 }))));
    return chart.metric.kind === 'counter' ? dropPartial(found, chart.intervalMs, s.range.to) : found;
  }
}
