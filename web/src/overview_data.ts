// Loads the data of the overview: one metric over the whole run, and its newest buckets while the
// job runs.

import { moved } from './compare';
import type { Job } from './job';
import { dropPartial, Line, lines } from './lines';
import { again, Loader, mergeTail, newest, Situation } from './loader';
import type { Range } from './model';
import type { Overview } from './overview';
import { aligned, interval, plan } from './plan';
import type { Metric, Source } from './source';

const GROWTH = 1.2; // a running job keeps its buckets until it is longer by this factor

export class OverviewData {
  private asked = '';

  constructor(
    private readonly source: Source,
    private readonly loader: Loader,
    private readonly overview: Overview,
  ) {}

  stale(): void {
    this.asked = '';
  }

  async load(job: Job, s: Situation): Promise<void> {
    const metric = job.overviewMetric();
    if (!metric) return;
    const { whole, sides } = s;
    this.overview.whole = whole;
    const i = interval((whole.to - whole.from) * GROWTH, this.overview.pixels());
    const key = `${metric.name} ${i} ${(sides ?? []).map((side) => side.job).join(' ')}`;
    // Of two runs, the newest bucket may be that of the longer one, which has ended.
    const fresh = key !== this.asked || (job.live && sides !== null);
    const from = fresh ? whole.from : newest(this.overview.lines) - again(i);
    if (!fresh && !job.live) return;
    const range = aligned({ from: Number.isFinite(from) ? from : whole.from, to: whole.to }, i);
    const got = await this.lines(metric, i, range, s);
    if (!got) return;
    if (fresh) {
      this.overview.lines = got;
      this.overview.intervalMs = i;
      this.asked = key;
    } else mergeTail(this.overview.lines, got, range.from);
    this.overview.setMetric(metric.name);
  }

  private async lines(metric: Metric, i: number, range: Range, s: Situation): Promise<Line[] | undefined> {
    const all: Line[] = [];
    for (const side of s.sides ?? [null]) {
      const shift = side?.shift ?? 0;
      const filter: Record<string, string> = side ? { job: side.job } : {};
      const { questions } = plan(metric, 'band', i, filter);
      const columns = await this.loader.guarded(() => this.source.query(questions, range.from + shift, range.to + shift));
      if (!columns) return undefined;
      const got = lines(side ? columns.map((c) => ({ ...c, tags: {} })) : columns);
      if (metric.kind === 'counter') dropPartial(got, i, range.to + shift);
      all.push(...(side ? moved(got, side) : got));
    }
    return all;
  }
}
