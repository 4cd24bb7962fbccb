// Sends requests to sonde's HTTP server: docs/page.md lists all of them. Paths are relative to the
// page, so that it works below any base path.

import { Batch } from './batch';
import { Column, readColumns } from './columns';
import { EventReader } from './events';
import { Gaps } from './gaps';
import { braceable, expression, type Question } from './plan';
import {
  Annotation,
  FindingsAnswer,
  MetricsAnswer,
  Missing,
  Node,
  Refused,
  Rights,
  Selection,
  Series,
  Source,
  Span,
  Status,
  StreamEvent,
  Unauthorized,
} from './source';

// How far the server's clock is ahead of the browser's. The Date header has truncated seconds: each
// answer gives a lower bound, and the error of the largest one is at most the time between two
// answers.
export class ServerClock {
  private aheadMs: number | null = null;

  note(date: string | null, nowMs: number): void {
    const said = date ? Date.parse(date) : NaN;
    if (Number.isNaN(said)) return;
    const ahead = said - nowMs;
    // A difference of up to a second comes from truncation; a larger one means that a clock was
    // set.
    if (this.aheadMs === null || ahead > this.aheadMs || ahead < this.aheadMs - 1500) this.aheadMs = ahead;
  }

  now(nowMs = Date.now()): number {
    const ahead = this.aheadMs ?? 0;
    return nowMs + (Math.abs(ahead) < 1000 ? 0 : ahead + 500);
  }
}

const NATIVE = 'sonde/v1/';
// A query may take as long as the server allows. So after this time without an answer, the page
// asks whether the server is healthy, which takes no time; if it does not say so in the same time,
// it has stalled, and all requests have failed.
const PATIENCE_MS = 5000;
// A request that has been lost on the way, as by a proxy, never gets an answer.
const SHORT_MS = 20000;
const LONG_MS = 60000; // twice the server's own deadline

// Reads an answer. An answer that is not sonde's, as a login page of a proxy, or that is cut, is no
// answer: it rejects with a TypeError, as fetch does without a server.
async function read<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DOMException) throw error; // aborted
    throw new TypeError(String(error));
  }
}

// Ends work on a server that does not answer.
export class Watchdog {
  private asking: Promise<void> | null = null;

  constructor(
    private readonly healthy: (signal: AbortSignal) => Promise<unknown>,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  // Runs `work`. Rejects with a TypeError, as fetch does without a server, if the server has
  // stalled, or after limitMs.
  async watch<T>(limitMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const end = performance.now() + limitMs;
    let timer: ReturnType<typeof setTimeout>;
    const stalled = new Promise<never>((_, reject) => {
      const give = () => {
        reject(new TypeError('the server does not answer'));
        abort.abort();
      };
      const look = () => (performance.now() >= end ? give() : void this.ask().then(wait, give));
      const wait = () => (timer = setTimeout(look, Math.min(this.patienceMs, limitMs)));
      wait();
    });
    try {
      return await Promise.race([work(abort.signal), stalled]);
    } finally {
      clearTimeout(timer!);
    }
  }

  // Sends one request at a time; all waiting requests share its answer.
  private ask(): Promise<void> {
    this.asking ??= this.healthy(AbortSignal.timeout(this.patienceMs))
      .then(() => undefined)
      .finally(() => (this.asking = null));
    return this.asking;
  }
}

export class Server implements Source {
  private readonly clock = new ServerClock();
  private readonly watchdog = new Watchdog((signal) => fetch(new URL('healthz', document.baseURI), { credentials: 'same-origin', cache: 'no-store', signal }));
  private readonly batch = new Batch((questions, fromMs, toMs) => this.queryNow(questions, fromMs, toMs));
  private readonly gaps = new Gaps();
  requests = 0;
  private sessionKey = ''; // with which this page may write; only this page has it

  now(): number {
    return this.clock.now();
  }

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
        // not sonde's error format: use the text
      }
      throw new Refused(message);
    }
    return response;
  }

  regained(): boolean {
    return this.gaps.take(performance.now());
  }

  private json<T>(path: string, limitMs = LONG_MS): Promise<T> {
    return this.watchdog.watch(limitMs, async (signal) => {
      const response = await this.fetch(NATIVE + path, { signal });
      return read(() => response.json() as Promise<T>);
    });
  }

  status = () => this.json<Status>('status', SHORT_MS);
  nodes = () => this.json<{ nodes: Node[] } & Missing>('nodes', SHORT_MS);
  metrics = (own = false) => this.json<MetricsAnswer>(own ? 'metrics?own' : 'metrics', SHORT_MS);
  series = (metric: string, limit: number) =>
    this.json<{ total: number; series: Series[] }>(`series?latest&limit=${limit}&match=${encodeURIComponent(metric)}`);
  findings = () => this.json<FindingsAnswer>('findings');
  spans = (fromMs: number, toMs: number, limit: number, job: string) =>
    this.json<{ spans: Span[] }>(
      `spans?start=${Math.floor(fromMs)}ms&end=${Math.ceil(toMs)}ms&limit=${limit}${job ? `&job_tag&tag=${encodeURIComponent(`job=${job}`)}` : ''}`,
    );
  annotations = (fromMs: number, toMs: number) =>
    this.json<{ annotations: Annotation[] }>(`annotations?start=${Math.floor(fromMs)}ms&end=${Math.ceil(toMs)}ms&limit=1000&job_tag`);

  rights = () => this.json<Rights>('session', SHORT_MS);

  async raise(token: string): Promise<Rights> {
    const { key, ...rights } = await this.post<Rights & { key: string }>(`${NATIVE}session`, {}, { 'X-Sonde-Token': token });
    this.sessionKey = key;
    return rights;
  }

  async annotate(text: string, atMs: number, tags: Record<string, string>): Promise<void> {
    await this.post('api/annotation', { startTime: Math.round(atMs), description: text, custom: tags });
  }

  async restartWithout(hosts: string[]): Promise<void> {
    await this.post(`${NATIVE}reboot`, { hosts: hosts.join(',') });
  }

  private post<T>(path: string, body: object, headers: Record<string, string> = {}): Promise<T> {
    const key: Record<string, string> = this.sessionKey ? { 'X-Sonde-Session-Key': this.sessionKey } : {};
    const init = { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...key, ...headers } };
    return this.watchdog.watch(SHORT_MS, async (signal) => {
      const response = await this.fetch(path, { ...init, signal });
      return read(() => response.json() as Promise<T>);
    });
  }

  query(questions: Question[], fromMs: number, toMs: number): Promise<Column[]> {
    return this.batch.query(questions, fromMs, toMs);
  }

  private async queryNow(questions: Question[], fromMs: number, toMs: number): Promise<Column[]> {
    const body = { start: Math.floor(fromMs), end: Math.ceil(toMs), queries: questions.map((q) => ({ m: expression(q) })) };
    const init = { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
    const bytes = await this.watchdog.watch(LONG_MS, async (signal) => {
      const response = await this.fetch(`${NATIVE}query?format=binary`, { ...init, signal });
      // With a host, the server does not ask the other nodes, and does not name them.
      if (questions.some((q) => !q.filter.host)) this.gaps.note(response.headers.get('X-Sonde-Missing'));
      return response.arrayBuffer();
    });
    return read(async () => readColumns(bytes));
  }

  async stream(selections: Selection[], sinceMs: number, signal: AbortSignal, take: (event: StreamEvent) => void): Promise<void> {
    const text = (s: Selection) => {
      const tags = braceable(s.filter).map(([key, value]) => `${key}=${value}`);
      return s.metric + (tags.length ? `{${tags.join(',')}}` : '');
    };
    const m = selections.map((s) => `m=${encodeURIComponent(text(s))}`).join('&');
    const response = await this.fetch(`${NATIVE}stream?${m}&since=${Math.floor(sinceMs)}ms`, { signal });
    const reader = response.body!.getReader();
    const events = new EventReader();
    const utf8 = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new TypeError('the stream has ended');
      for (const { event, data } of events.push(utf8.decode(value, { stream: true }))) take({ event, data: JSON.parse(data) } as StreamEvent);
    }
  }
}
