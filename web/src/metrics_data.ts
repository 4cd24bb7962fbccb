// Requests the list of metrics: at first only those of the server's node, which it knows at once;
// then those of all nodes, less often where many nodes have to be asked.

import type { Job } from './job';
import { type Loader, MANY_NODES } from './loader';
import type { MetricsAnswer, Source } from './source';

const MANY_MS = 15000;

export class MetricsData {
  private askedAt = 0;

  constructor(
    private readonly source: Source,
    private readonly loader: Loader,
  ) {}

  // The known list if no request is due; undefined if the request has failed.
  async request(job: Job): Promise<MetricsAnswer | undefined> {
    if (!job.metrics.length) return this.loader.guarded(() => this.source.metrics(true));
    const due = job.nodes.length <= MANY_NODES || Date.now() - this.askedAt >= MANY_MS;
    return due ? this.all() : { metrics: job.metrics };
  }

  async all(): Promise<MetricsAnswer | undefined> {
    this.askedAt = Date.now();
    return this.loader.guarded(() => this.source.metrics());
  }
}
