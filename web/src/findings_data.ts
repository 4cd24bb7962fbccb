// Requests findings, and adds those that the page sees itself.

import type { Side } from './compare';
import { all, Finding, FindingStrip } from './findings';
import * as format from './format';
import type { Job } from './job';
import { type Loader, MANY_NODES } from './loader';
import type { Range } from './model';
import type { FindingAnswer, Source } from './source';

const LIVE_MS = 15000; // between two requests for a running job
const MANY_MS = 60000; // … with many nodes

export class FindingsData {
  all: Finding[] = [];
  private answers: FindingAnswer[] = [];
  private measures: number | null = null;
  private askedAt = -Infinity;
  private askedOf = '';

  constructor(
    private readonly source: Source,
    private readonly loader: Loader,
    private readonly strip: FindingStrip,
  ) {}

  // Whole runs are compared: a recording once, a running job repeatedly.
  async load(job: Job): Promise<void> {
    const every = job.nodes.length > MANY_NODES ? MANY_MS : LIVE_MS;
    const of = job.nodes.map((n) => `${n.host} ${n.job} ${job.live ? '' : n.last_ns}`).join();
    const due = job.live ? performance.now() - this.askedAt >= every : of !== this.askedOf;
    if (!due || !job.nodes.length) return;
    this.askedAt = performance.now();
    this.askedOf = of;
    const answer = await this.loader.guarded(() => this.source.findings());
    if (answer) {
      this.answers = answer.findings;
      this.measures = answer.measures.length;
    } else this.askedOf = '';
  }

  // `passes`: whether tags pass the filter.
  show(job: Job, whole: Range, sides: Side[] | null, passes: (tags: Record<string, string>) => boolean): void {
    const found = this.answers.filter((f) => passes(f.tags));
    this.all = all(job, whole, found, (name) => {
      const side = sides?.find((s) => s.job === name);
      if (!sides) return { job: name, shift: 0, clock: (t) => format.clock(t) };
      return side ? { job: name, shift: side.shift, clock: (t) => format.elapsed(t - sides[0]!.from) } : null;
    });
    this.strip.update(this.all, this.measures);
  }
}
