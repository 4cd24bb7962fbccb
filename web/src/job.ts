// The state of the job: its status, nodes and metrics, from the last request.

import { compareNatural } from './lines';
import type { Range } from './model';
import type { Metric, Node, Status } from './source';

export class Job {
  status: Status | null = null;
  nodes: Node[] = [];
  metrics: Metric[] = [];
  live = false;
  dropped = 0;
  pointsPerSecond = 0;
  // the newest point of each node, also of a missing one
  readonly lastOf = new Map<string, number>();
  // the first and the last point of all nodes, nanoseconds
  first: number | undefined;
  last: number | undefined;
  private pointsBefore: { at: number; points: number } | null = null;

  // `now`: the source's clock, milliseconds.
  takeStatus(status: Status, nodes: Node[], now: number): void {
    this.status = status;
    for (const n of nodes) if (n.last_ns !== undefined) this.lastOf.set(n.host, n.last_ns / 1e6);
    this.nodes = nodes.sort((a, b) => compareNatural(a.host, b.host));
    this.first = least([...nodes.map((n) => n.first_ns), status.first_ns]);
    this.last = most([...nodes.map((n) => n.last_ns), status.last_ns]);
    const connected = status.hub?.nodes.some((n) => n.connected) ?? false;
    const ended = status.runs.length > 0 && status.runs.every((r) => r.end_ns !== undefined);
    this.live = !ended && (connected || nodes.some((n) => n.state === 'live'));
    const before = this.pointsBefore;
    if (before && now > before.at) this.pointsPerSecond = Math.max(0, ((status.points - before.points) * 1000) / (now - before.at));
    this.pointsBefore = { at: now, points: status.points };
  }

  // Returns true if they have changed.
  takeMetrics(metrics: Metric[]): boolean {
    if (metrics.length === this.metrics.length && metrics.every((m, i) => m.name === this.metrics[i]!.name)) return false;
    this.metrics = metrics;
    return true;
  }

  // From the first point to the last, or to now.
  whole(now: number): Range {
    const { first, last } = this;
    if (first === undefined) return { from: now - 60000, to: now };
    const to = this.live ? Math.max(now, (last ?? 0) / 1e6) : last! / 1e6;
    const from = first / 1e6;
    // A run of a single instant gets a second around it.
    return to - from < 1 ? { from: from - 500, to: from + 500 } : { from, to };
  }

  // The mean number of series of a metric, on the server's own node.
  seriesEach(): number {
    return (this.status?.series ?? 0) / Math.max(1, this.metrics.length);
  }

  empty(): boolean {
    return this.status !== null && this.status.points === 0 && this.first === undefined;
  }

  has(metric: string): boolean {
    return this.metrics.some((m) => m.name === metric);
  }

  // The first metric of the program, because it says most about the job; else the processor.
  overviewMetric(): Metric | undefined {
    return this.metrics.find((m) => !m.source) ?? this.metrics.find((m) => m.name === 'cpu_percent') ?? this.metrics[0];
  }

  // `named`: the user's choice.
  nodesMetric(named: string): Metric | undefined {
    return this.metrics.find((m) => m.name === named) ?? this.metrics.find((m) => m.name === 'cpu_percent') ?? this.overviewMetric();
  }

  // A host has the same colour everywhere, as long as a chart has one line per host.
  colourOf(tags: Record<string, string>, index: number, all: { tags: Record<string, string> }[]): number {
    const hosts = new Set(all.map((l) => l.tags.host));
    if (hosts.size < 2 || hosts.size < all.length) return index;
    const at = this.nodes.findIndex((n) => n.host === tags.host);
    return at < 0 ? index : at;
  }

  name(): string {
    return this.status?.job || this.status?.runs[0]?.job || '';
  }

  // The target for `sonde query`: for a recording its path, because a copy of it may have the same
  // job id.
  target(): string {
    const paths = this.status?.files.map((f) => f.path) ?? [];
    const folders = [...new Set(paths.map(folderOf))];
    if (this.live || !paths.length) return this.name();
    return paths.length === 1 ? paths[0]! : folders.length === 1 ? folders[0]! : this.name();
  }

  // The server's program and address, for the footer.
  about(): string {
    const files = this.status?.files ?? [];
    const place = files.length === 1 ? files[0]!.path : files.length ? folderOf(files[0]!.path) : '';
    return `sonde ${this.status?.version ?? ''}${place ? ` · ${place}` : ''}`;
  }
}

function folderOf(path: string): string {
  return path.replace(/\/[^/]*$/, '');
}

// The nodes that the server knows without a request to them, those behind a relay among them; their
// times are those of its own data.
export function connectedNodes(status: Status): Node[] {
  const { job, first_ns, last_ns } = status;
  const own = status.files.flatMap((f) => f.host ?? []);
  const others = (status.hub?.nodes ?? []).map((n) => n.host).filter((host) => !status.missing?.includes(host));
  return [...new Set([...own, ...others])].map((host) => ({ host, job, state: 'live', series: 0, first_ns, last_ns }));
}

function least(times: (number | undefined)[]): number | undefined {
  return times.reduce((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a), undefined);
}

function most(times: (number | undefined)[]): number | undefined {
  return times.reduce((a, b) => (a === undefined || (b !== undefined && b > a) ? b : a), undefined);
}
