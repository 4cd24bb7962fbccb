// Loads the data of charts: requests it for visible charts, follows the stream, and fills the gap
// after a lost connection.
//
// A chart that follows the clock gets its lines from the server once, and from then on from one
// stream for all charts. The stream begins a bucket before the chart's last one, so that this
// bucket is computed again and no point is missing between answer and stream; a reconnection works
// the same way. Bands, and charts without a place in the stream, request their last buckets every
// two seconds.

import { Chart } from './chart';
import { Column, millisecondsOfNumber } from './columns';
import { dropPartial, forget, Line, lines, replaceTail, Tail, tagKey } from './lines';
import type { Range } from './model';
import { aligned, interval, LINES_ASKED_MAX, LINES_MAX, Mode, plan, type Question } from './plan';
import { Refused, type Source, type StreamEvent, Unauthorized } from './source';
import { moved, type Side } from './compare';
import { filterText } from './model';

export const STREAM_MAX = 16; // maximum number of selections in a stream
const LATE_MS = 6000;
// a counter's bucket that ended more recently may lack points: its change would be too small, the
// next one too large
const SETTLE_MS = 2000;
const QUERIES_A_SIDE = 3; // median, minimum, maximum
// Quartiles of 1,000 nodes make the first charts 0.7 s later, and those of 64 nodes take no longer.
const QUARTILE_NODES = 64;
export const CHARTS_A_REQUEST = 12;
// With more nodes, requests that each node has to answer are sent less often.
export const MANY_NODES = 16;
const POLL_MOST_MS = 15000; // between two polls of a chart
const RETRY_MS = [1000, 2000, 4000, 8000, 15000, 30000];

export interface Situation {
  range: Range;
  whole: Range;
  filter: Record<string, string>;
  follows: boolean; // the range moves with the clock
  nodes: number;
  seriesEach: number; // the mean number of series of a metric
  sides: Side[] | null; // two compared runs, at times of the first
}

export type Connection = { state: 'ok' } | { state: 'lost'; since: number; retryAt: number } | { state: 'unauthorized' };

export class Loader {
  connection: Connection = { state: 'ok' };
  onScreen: Promise<unknown> = Promise.resolve(); // ends when the charts on the screen have data
  private tries = 0;
  private loading = new Set<Chart>();
  // counts changes of the range and the filter: answers to older requests are dropped
  private generation = 0;
  private filterWas = '';
  private stream: { key: string; abort: AbortController; tails: Map<string, Tail> } | null = null;

  constructor(
    private readonly source: Source,
    private readonly situation: () => Situation,
    private readonly changed: (chart: Chart | null) => void, // null: the connection has changed
  ) {}

  // Runs a request, and updates the state of the connection. undefined: it failed, or has no chance
  // of success now.
  async guarded<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (!this.open()) return undefined;
    try {
      const result = await work();
      if (this.connection.state === 'lost') this.recovered();
      return result;
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  private failed(error: unknown): void {
    if (error instanceof Unauthorized) {
      this.connection = { state: 'unauthorized' };
      this.changed(null);
    } else if (error instanceof TypeError) {
      // fetch throws this if no server answers.
      const since = this.connection.state === 'lost' ? this.connection.since : Date.now();
      if (this.connection.state === 'lost' && Date.now() < this.connection.retryAt) return;
      const pause = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)]!;
      this.connection = { state: 'lost', since, retryAt: Date.now() + pause };
      this.changed(null);
    } else if (!(error instanceof DOMException && error.name === 'AbortError') && !(error instanceof Refused)) {
      throw error;
    }
  }

  private recovered(): void {
    this.connection = { state: 'ok' };
    this.tries = 0;
    this.stale();
    this.changed(null);
  }

  // Whether a request has a chance of success now.
  open(): boolean {
    return this.connection.state === 'ok' || (this.connection.state === 'lost' && Date.now() >= this.connection.retryAt);
  }

  // The data stay until the answer to the next request arrives.
  stale(): void {
    this.generation++;
    this.stopStream();
  }

  private generations = new WeakMap<Chart, number>();
  private polledAt = new WeakMap<Chart, number>(); // milliseconds of Date.now()

  private needs(chart: Chart, s: Situation): boolean {
    if (!chart.asked || this.generations.get(chart) !== this.generation) return true;
    if (interval(s.range.to - s.range.from, chart.pixels()) !== chart.intervalMs) return true;
    return s.range.from < chart.asked.from - chart.intervalMs || (!s.follows && s.range.to > chart.asked.to + chart.intervalMs);
  }

  // Requests the data that charts lack: first those of `onScreen`, then those of the others.
  async load(charts: Chart[], onScreen: Set<Chart>): Promise<void> {
    const s = this.situation();
    const filter = [filterText(s.filter), ...(s.sides ?? []).map((x) => `${x.job} ${x.shift}`)].join(' ');
    if (filter !== this.filterWas) {
      this.filterWas = filter;
      this.stale();
    }
    const asked = this.askAll(charts.filter((c) => onScreen.has(c)), s);
    this.onScreen = Promise.allSettled([this.onScreen, asked]);
    await asked;
    await this.askAll(charts, s);
    this.follow(charts, this.situation());
  }

  private async askAll(charts: Chart[], s: Situation): Promise<void> {
    const wanting = charts.filter((c) => !this.loading.has(c) && this.needs(c, s));
    const parts: Chart[][] = [];
    for (let i = 0; i < wanting.length; i += CHARTS_A_REQUEST) parts.push(wanting.slice(i, i + CHARTS_A_REQUEST));
    await Promise.all(parts.map((part) => this.ask(part, s)));
  }

  private async ask(charts: Chart[], s: Situation): Promise<void> {
    const generation = this.generation;
    // Half a screen more on each side, for panning, but not beyond the ends of the run.
    const width = s.range.to - s.range.from;
    const wide: Range = s.follows
      ? s.range
      : { from: Math.max(s.whole.from, s.range.from - width / 2), to: Math.min(s.whole.to, s.range.to + width / 2) };
    const groups = new Map<number, Chart[]>(); // a common range for all charts of a request
    for (const chart of charts) {
      const i = interval(width, chart.pixels());
      groups.set(i, [...(groups.get(i) ?? []), chart]);
      this.loading.add(chart);
    }
    for (const [intervalMs, group] of groups) {
      const range = aligned(wide, intervalMs);
      const quartiles = !s.sides && s.nodes <= QUARTILE_NODES;
      const plans = group.map((c) => plan(c.metric, this.modeOf(c, s), intervalMs, s.filter, quartiles));
      const answers = await (s.sides ? this.askSides(group, s.sides, s, intervalMs, range) : this.guarded(() => this.queryEach(group, plans.map((p) => p.questions), range)));
      group.forEach((chart, k) => {
        this.loading.delete(chart);
        if (!answers || generation !== this.generation) return;
        const own = answers[k]!;
        chart.plan = plans[k]!;
        chart.mode = plans[k]!.mode;
        chart.intervalMs = intervalMs;
        chart.asked = range;
        this.generations.set(chart, this.generation);
        chart.sourceSeries = own.reduce((n, c) => ((s.sides ? c.query % QUERIES_A_SIDE : c.query) === 0 ? n + (chart.mode === 'band' ? c.sourceSeries : 1) : n), 0);
        chart.setData(s.sides ? this.sideLines(chart, own, s.sides, range.to) : this.linesOf(chart, own, range.to, s.follows));
        this.changed(chart);
        // The guess of the mode was wrong, so requests the other mode at once.
        if (this.modeOf(chart, s) !== chart.mode) void this.ask([chart], this.situation());
      });
    }
  }

  // The answers of both runs, each at its own times; the queries of the second run have numbers
  // after those of the first.
  private async askSides(group: Chart[], sides: Side[], s: Situation, intervalMs: number, range: Range): Promise<Column[][] | undefined> {
    const all: Column[][] = group.map(() => []);
    for (const [n, side] of sides.entries()) {
      const questions = group.map((c) => plan(c.metric, 'band', intervalMs, { ...s.filter, job: side.job }).questions);
      const shifted = aligned({ from: range.from + side.shift, to: range.to + side.shift }, intervalMs);
      const columns = await this.guarded(() => this.queryEach(group, questions, shifted));
      if (!columns) return undefined;
      columns.forEach((own, k) => all[k]!.push(...own.map((c) => ({ ...c, query: c.query + QUERIES_A_SIDE * n }))));
    }
    return all;
  }

  private sideLines(chart: Chart, columns: Column[], sides: Side[], toMs: number): Line[] {
    return sides.flatMap((side, n) => {
      const own = columns.filter((c) => Math.floor(c.query / QUERIES_A_SIDE) === n).map((c) => ({ ...c, query: c.query % QUERIES_A_SIDE, tags: {} }));
      const to = side.live ? Math.min(toMs + side.shift, side.to - SETTLE_MS) : toMs + side.shift;
      return moved(this.linesOf(chart, own, to, false), side);
    });
  }

  // `toMs`: the end of the request.
  private linesOf(chart: Chart, columns: Column[], toMs: number, live: boolean): Line[] {
    const all = lines(columns);
    return chart.metric.kind === 'counter' ? dropPartial(all, chart.intervalMs, live ? toMs - SETTLE_MS : toMs) : all;
  }

  // One request for all; a refused metric affects only its own chart.
  private async queryEach(charts: Chart[], questions: Question[][], range: Range): Promise<Column[][]> {
    const flat = questions.flat();
    const owner = questions.flatMap((list, chart) => list.map((_, index) => ({ chart, index })));
    const split = (columns: Column[]) => {
      const all: Column[][] = charts.map(() => []);
      for (const c of columns) {
        const { chart, index } = owner[c.query]!;
        all[chart]!.push({ ...c, query: index });
      }
      return all;
    };
    for (const chart of charts) chart.failed = '';
    try {
      return split(await this.source.query(flat, range.from, range.to));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (charts.length === 1) {
        charts[0]!.failed = error.message;
        return [[]];
      }
      const each: Column[][] = [];
      for (let i = 0; i < charts.length; i++) each.push(...(await this.queryEach([charts[i]!], [questions[i]!], range)));
      return each;
    }
  }

  // Lines for a few series, a band for many; the user may request all lines.
  private modeOf(chart: Chart, s: Situation): Mode {
    if (s.sides) return 'band';
    const known = chart.sourceSeries;
    if (chart.allLines && known <= LINES_ASKED_MAX) return 'lines';
    // A wrong guess costs a second request, and all lines of thousands of series cost seconds.
    if (!known) return s.nodes > LINES_MAX || s.seriesEach > LINES_ASKED_MAX ? 'band' : 'lines';
    return known > LINES_MAX ? 'band' : 'lines';
  }

  // ---- the stream

  private stopStream(): void {
    this.stream?.abort.abort();
    this.stream = null;
  }

  // Opens one stream for the new points of the charts that show lines.
  private follow(charts: Chart[], s: Situation): void {
    const followed = s.follows && this.connection.state === 'ok'
      ? charts.filter((c) => c.mode === 'lines' && c.asked && this.generations.get(c) === this.generation && c.hasData() && !c.allLines).slice(0, STREAM_MAX)
      : [];
    const key = followed.map((c) => `${c.metric.name}@${c.intervalMs}`).sort().join(' ');
    if (key === (this.stream?.key ?? '')) return;
    this.stopStream();
    if (!followed.length) return;
    const by = new Map(followed.map((c) => [c.metric.name, c]));
    const series = new Map<number, { chart: Chart; tags: Record<string, string> }>();
    const abort = new AbortController();
    const stream = { key, abort, tails: new Map<string, Tail>() };
    this.stream = stream;
    // Begins a bucket before the last one of the chart that is farthest behind.
    const since = Math.min(...followed.map((c) => Math.max(c.asked!.from, newest(c.lines)) - c.intervalMs));
    const intervals = new Map(followed.map((c) => [c, c.intervalMs]));
    const begins = new Map(followed.map((c) => [c, Math.ceil(since / c.intervalMs) * c.intervalMs]));
    const take = (e: StreamEvent) => {
      if (this.stream !== stream) return;
      if (e.event === 'series') {
        const chart = by.get(e.data.metric);
        if (chart) series.set(e.data.id, { chart, tags: e.data.tags });
      } else if (e.event === 'points') {
        const to = series.get(e.data.id);
        // A chart that was requested again with other buckets soon gets another stream.
        if (to && to.chart.intervalMs === intervals.get(to.chart)) this.takePoints(stream.tails, to.chart, to.tags, e.data, begins.get(to.chart)!);
      }
    };
    this.source.stream(followed.map((c) => ({ metric: c.metric.name, filter: s.filter })), since, abort.signal, take).catch((error: unknown) => {
      if (this.stream !== stream) return;
      this.stream = null;
      this.failed(error);
    });
  }

  private takePoints(
    tails: Map<string, Tail>,
    chart: Chart,
    tags: Record<string, string>,
    points: { t_ns: number[]; values: (number | null)[] },
    begin: number,
  ): void {
    const key = tagKey(tags);
    let line = chart.lines.find((l) => l.key === key);
    if (!line) {
      line = { key, tags, t: [], mean: [], low: [], high: [] };
      chart.setData([...chart.lines, line]);
      chart.sourceSeries = chart.lines.length;
      if (chart.sourceSeries > LINES_MAX) chart.asked = null; // the chart becomes a band
    }
    const name = `${chart.metric.name} ${key}`;
    let tail = tails.get(name);
    if (!tail) tails.set(name, (tail = new Tail(chart.intervalMs, chart.metric.kind === 'counter')));
    points.t_ns.forEach((ns, i) => {
      const t = millisecondsOfNumber(ns);
      const v = points.values[i];
      // The stream's first bucket is incomplete.
      if (v !== null && v !== undefined && t >= begin) tail.push(line, t, v);
    });
    const { range } = this.situation();
    for (const l of chart.lines) forget(l, range.from - (range.to - range.from));
    this.changed(chart);
  }

  // With many nodes, a query costs a message to each node, and a comparison brings the whole range,
  // so charts with long buckets are polled less often.
  private due(chart: Chart, s: Situation): boolean {
    const every = s.nodes > MANY_NODES || s.sides ? Math.min(POLL_MOST_MS, chart.intervalMs / 2) : 0;
    return Date.now() - (this.polledAt.get(chart) ?? -Infinity) >= every;
  }

  // Requests the last buckets of bands, and of charts without a place in the stream.
  async poll(charts: Chart[]): Promise<void> {
    const s = this.situation();
    if (!s.follows) return;
    const due = charts.filter(
      (c) =>
        c.plan && c.asked && this.due(c, s) && this.generations.get(c) === this.generation && !this.loading.has(c) &&
        (c.mode === 'band' || c.allLines || !this.stream?.key.split(' ').includes(`${c.metric.name}@${c.intervalMs}`)),
    );
    for (const chart of due) this.polledAt.set(chart, Date.now());
    if (s.sides) {
      for (const chart of due) this.generations.delete(chart);
      await this.askAll(due, s);
      return;
    }
    const generation = this.generation;
    for (let i = 0; i < due.length; i += CHARTS_A_REQUEST) {
      const part = due.slice(i, i + CHARTS_A_REQUEST);
      const from = Math.min(...part.map((c) => Math.max(c.asked!.from, newest(c.lines) - again(c.intervalMs))));
      const starts = part.map((c) => Math.ceil(from / c.intervalMs) * c.intervalMs);
      const plans = part.map((c) => c.plan!);
      const columns = await this.guarded(() =>
        this.queryEach(part, plans.map((p) => p.questions), { from: Math.min(...starts), to: s.range.to }),
      );
      if (!columns || generation !== this.generation) return;
      part.forEach((chart, k) => {
        if (chart.plan !== plans[k]) return; // a newer request with other buckets has started
        for (const line of chart.lines) forget(line, s.range.from - (s.range.to - s.range.from));
        if (mergeTail(chart.lines, this.linesOf(chart, columns[k]!, s.range.to, true), starts[k]!)) chart.setData(chart.lines);
        const sources = columns[k]!.filter((c) => c.query === 0).reduce((n, c) => n + (chart.mode === 'band' ? c.sourceSeries : 1), 0);
        chart.sourceSeries = Math.max(chart.sourceSeries, sources);
        if (this.modeOf(chart, s) !== chart.mode) chart.asked = null;
        this.changed(chart);
      });
    }
  }
}

// The length at the end that is requested again: incomplete buckets, and late points of other
// nodes.
export function again(intervalMs: number): number {
  return Math.max(2 * intervalMs, LATE_MS);
}

// The time of the newest bucket; -Infinity without any.
export function newest(all: Line[]): number {
  return all.reduce((t, l) => Math.max(t, l.t[l.t.length - 1] ?? -Infinity), -Infinity);
}

// Appends newer buckets to the existing ones; true if a line is new.
export function mergeTail(all: Line[], newer: Line[], fromMs: number): boolean {
  let added = false;
  for (const line of newer) {
    const own = all.find((l) => l.key === line.key);
    if (own) replaceTail(own, line, fromMs);
    else {
      all.push(line);
      added = true;
    }
  }
  return added;
}

