// Loads the data of the heat map: a row for each node over the range, and its newest buckets while
// the job runs.

import * as format from './format';
import { HeatMap, rows, sorted } from './heatmap';
import type { Job } from './job';
import { dropPartial, forget, Line, lines } from './lines';
import { again, Loader, mergeTail, newest, Situation } from './loader';
import type { View } from './model';
import { groupable, groupedRows } from './node_groups';
import { aligned, expression, interval, nodesQuestion } from './plan';
import type { Metric, Source } from './source';

const LIVE_MS = 4000; // between two requests for the newest buckets
const FEW_PIXELS = 1200; // wider maps have no more buckets
const MANY_NODES = 200;
// … have a heat map of this width: 150 buckets, so that 1,000 of them stay below 3 MB
const MANY_PIXELS = 300;

export class HeatMapData {
  private lines: Line[] = [];
  private asked = '';
  private askedAt = 0;
  private arranged = ''; // the order and the grouping of the rows
  private busy = false;

  constructor(
    private readonly source: Source,
    private readonly loader: Loader,
    private readonly map: HeatMap,
  ) {}

  stale(): void {
    this.asked = '';
  }

  // Returns true if the rows have changed.
  async load(job: Job, s: Situation, view: View): Promise<boolean> {
    const metric = job.nodesMetric(view.heat);
    // Two runs may have the same nodes, and a heat map can show only one row for each.
    this.map.element.hidden = job.nodes.length < 2 || s.sides !== null;
    this.map.show(view, groupable(job.nodes.map((n) => n.host)));
    if (!metric || this.map.element.hidden || view.heatHidden) return false;
    const changed = this.map.loaded && this.arranged !== arrangement(view);
    if (changed) this.arrange(view);
    if (this.busy) return changed;
    return (await this.fetch(job, s, view, metric)) || changed;
  }

  private arrange(view: View): void {
    this.arranged = arrangement(view);
    const all = rows(this.lines);
    this.map.rows = view.heatGroups ? groupedRows(all, view.heatSort, view.heatGroups) : sorted(all, view.heatSort);
  }

  private async fetch(job: Job, s: Situation, view: View, metric: Metric): Promise<boolean> {
    this.map.reserve(job.nodes.length);
    const { range } = s;
    const pixels = Math.min(this.map.pixels(), job.nodes.length > MANY_NODES ? MANY_PIXELS : FEW_PIXELS);
    const i = interval(range.to - range.from, pixels);
    const question = nodesQuestion(metric, i, view.filter);
    const key = `${expression(question)} ${s.follows ? view.last : `${range.from} ${range.to}`}`;
    const fresh = key !== this.asked;
    if (!fresh && (!s.follows || Date.now() - this.askedAt < LIVE_MS)) return false;
    const last = newest(this.lines);
    const asked = aligned({ from: fresh || !Number.isFinite(last) ? range.from : last - again(i), to: range.to }, i);
    this.busy = true;
    const columns = await this.loader.guarded(() => this.source.query([question], asked.from, asked.to));
    this.busy = false;
    if (!columns) return false;
    this.askedAt = Date.now();
    this.asked = key;
    const all = lines(columns.map((c) => ({ ...c, tags: { host: c.tags.host ?? '' } })));
    const got = metric.kind === 'counter' ? dropPartial(all, i, asked.to) : all;
    if (fresh) this.lines = got;
    else {
      for (const line of this.lines) forget(line, range.from - (range.to - range.from));
      mergeTail(this.lines, got, asked.from);
    }
    this.map.loaded = true;
    this.map.metric = metric.name;
    this.map.unit = metric.kind === 'counter' ? format.rateUnit(metric.unit) : metric.unit;
    this.map.intervalMs = i;
    if (document.activeElement !== this.map.picker) this.map.picker.value = metric.name;
    this.arrange(view);
    return true;
  }
}

function arrangement(view: View): string {
  return JSON.stringify([view.heatSort, view.heatGroups]);
}
