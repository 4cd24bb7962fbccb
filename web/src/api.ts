// What the page asks its server: docs/page.md has the whole list. Paths are relative to the page, so
// that it works below any base path.

import { Column, readColumns } from './columns';
import { EventReader } from './events';

export interface Run {
  job: string;
  command: string;
  level: number;
  start_ns: number;
  end_ns?: number;
  exit_code?: number;
}
export interface Status {
  job: string;
  version: string;
  level: number;
  series: number;
  points: number;
  first_ns?: number;
  last_ns?: number;
  missing?: string[];
  runs: Run[];
  files: { path: string; state: string; host?: string; job?: string; error?: string }[];
  shift_ns: number;
  hub?: { nodes: { host: string; connected: boolean }[] };
}
export interface Node {
  host: string;
  job: string;
  state: string;
  series: number;
  first_ns?: number;
  last_ns?: number;
}
export interface Metric {
  name: string;
  kind: 'gauge' | 'counter';
  unit: string;
  help: string;
  level: number;
  source?: string; // of a built-in metric
}
export interface Series {
  metric: string;
  tags: Record<string, string>;
  value?: number | null;
}
export interface Span {
  name: string;
  start_ns: number;
  end_ns?: number;
  id: number | string;
  parent: number | string;
  node: string;
  tags: Record<string, string>;
}
export interface Annotation {
  text: string;
  t_ns: number;
  node: string;
  tags: Record<string, string>;
}
// A member that is slower than the others (docs/http.md, "Findings").
export interface FindingAnswer {
  metric?: string;
  span?: string;
  job?: string;
  tags: Record<string, string>;
  state: 'slow' | 'was slow';
  factor: number;
  against: 'others' | 'own best';
  rounds: number;
  since_ns: number;
  until_ns: number;
}
export interface Missing {
  missing?: { host: string; reason: string }[];
}

// The server refused: no session, or it has ended.
export class Unauthorized extends Error {}
// The server said no to this request alone.
export class Refused extends Error {}

// How far the server's clock is ahead of the browser's. The Date header has whole seconds, cut: each
// answer gives a lower bound, and the largest is right within the time between two answers.
export class ServerClock {
  private aheadMs: number | null = null;

  note(date: string | null, nowMs: number): void {
    const said = date ? Date.parse(date) : NaN;
    if (Number.isNaN(said)) return;
    const ahead = said - nowMs;
    // A second of difference may be the cut alone; more is a clock that was set.
    if (this.aheadMs === null || ahead > this.aheadMs || ahead < this.aheadMs - 1500) this.aheadMs = ahead;
  }

  now(nowMs = Date.now()): number {
    const ahead = this.aheadMs ?? 0;
    return nowMs + (Math.abs(ahead) < 1000 ? 0 : ahead + 500);
  }
}

const NATIVE = 'sonde/v1/';

export class Api {
  readonly clock = new ServerClock();
  requests = 0;

  private async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    this.requests++;
    const response = await fetch(new URL(path, document.baseURI), { credentials: 'same-origin', ...init });
    this.clock.note(response.headers.get('Date'), Date.now());
    if (response.status === 401) throw new Unauthorized('the session has ended');
    if (response.status >= 502) throw new TypeError(`the proxy says ${response.status}`);
    if (!response.ok) {
      const text = await response.text();
      let message = text;
      try {
        message = JSON.parse(text).error.message;
      } catch {
        // not ours: as it is
      }
      throw new Refused(message);
    }
    return response;
  }

  private async json<T>(path: string): Promise<T> {
    return (await this.fetch(NATIVE + path)).json() as Promise<T>;
  }

  status = () => this.json<Status>('status');
  nodes = () => this.json<{ nodes: Node[] } & Missing>('nodes');
  metrics = () => this.json<{ metrics: Metric[] } & Missing>('metrics');
  series = (match: string, limit: number) =>
    this.json<{ total: number; series: Series[] }>(`series?latest&limit=${limit}&match=${encodeURIComponent(match)}`);
  findings = () => this.json<{ total: number; findings: FindingAnswer[]; measures: unknown[] } & Missing>('findings');
  // `job`: of that run only; '': of all.
  spans = (fromMs: number, toMs: number, limit: number, job: string) =>
    this.json<{ spans: Span[] }>(
      `spans?start=${Math.floor(fromMs)}ms&end=${Math.ceil(toMs)}ms&limit=${limit}${job ? `&job_tag&tag=${encodeURIComponent(`job=${job}`)}` : ''}`,
    );
  annotations = (fromMs: number, toMs: number) =>
    this.json<{ annotations: Annotation[] }>(`annotations?start=${Math.floor(fromMs)}ms&end=${Math.ceil(toMs)}ms&limit=1000&job_tag`);

  // The answers of several expressions over one range; Column.query is the index of its expression.
  async query(expressions: string[], fromMs: number, toMs: number, signal?: AbortSignal): Promise<Column[]> {
    const body = { start: Math.floor(fromMs), end: Math.ceil(toMs), queries: expressions.map((m) => ({ m })) };
    const response = await this.fetch(`${NATIVE}query?format=binary`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json' },
      signal,
    });
    return readColumns(await response.arrayBuffer());
  }

  // Calls `take` for each event until the connection ends (a rejected promise) or is aborted.
  async stream(
    selections: string[],
    sinceMs: number,
    signal: AbortSignal,
    take: (event: string, data: unknown) => void,
  ): Promise<void> {
    const m = selections.map((s) => `m=${encodeURIComponent(s)}`).join('&');
    const response = await this.fetch(`${NATIVE}stream?${m}&since=${Math.floor(sinceMs)}ms`, { signal });
    const reader = response.body!.getReader();
    const events = new EventReader();
    const utf8 = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new TypeError('the stream has ended');
      for (const { event, data } of events.push(utf8.decode(value, { stream: true }))) take(event, JSON.parse(data));
    }
  }
}
