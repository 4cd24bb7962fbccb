// The interface to the data: the page knows only `Source`, not where its data come from. `Server`
// (server.ts) requests it from sonde's HTTP server. A page with embedded data implements it itself.

import type { Column } from './columns';
import type { Question } from './plan';

export interface Run {
  job: string;
  command: string;
  level: number;
  host?: string; // the node that it was started on
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
  source?: string; // set for a built-in metric
}
export interface MetricsAnswer extends Missing {
  metrics: Metric[];
  partial?: boolean; // other nodes may have more
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
// A member that is slower than the others, or silent although they go on (docs/http.md,
// "Findings").
export interface FindingAnswer {
  metric?: string;
  span?: string;
  job?: string;
  tags: Record<string, string>;
  state: 'slow' | 'was slow' | 'silent';
  factor?: number; // a silent member has neither `factor` nor `against`
  against?: 'others' | 'own best';
  values?: number; // of a silent member; `others`: the fewest values of a member that goes on
  others?: number;
  rounds: number;
  since_ns: number;
  until_ns: number;
}
export interface FindingsAnswer extends Missing {
  total: number;
  findings: FindingAnswer[];
  measures: unknown[];
}
export interface Missing {
  missing?: { host: string; reason: string }[];
}

export type Role = 'view' | 'write' | 'control';
// What this client may do, and which actions the job accepts.
export interface Rights {
  role: Role;
  annotations: boolean;
  restarts: boolean;
}

// The server refused: there is no session, or it has ended.
export class Unauthorized extends Error {}
// The server refused only this request.
export class Refused extends Error {}

// Every request of the page. A promise is rejected with Unauthorized, with Refused, or with a
// TypeError if the source does not answer: the page then tries again (loader.ts).
export interface Source {
  readonly requests: number; // since the page was loaded
  now(): number; // the source's clock, milliseconds since the epoch
  status(): Promise<Status>;
  nodes(): Promise<{ nodes: Node[] } & Missing>;
  // `own`: only metrics of the server's node, which the server knows at once.
  metrics(own?: boolean): Promise<MetricsAnswer>;
  // The series of a metric, with their newest values.
  series(metric: string, limit: number): Promise<{ total: number; series: Series[] }>;
  findings(): Promise<FindingsAnswer>;
  // `job`: only spans of that run; '': of all.
  spans(fromMs: number, toMs: number, limit: number, job: string): Promise<{ spans: Span[] }>;
  annotations(fromMs: number, toMs: number): Promise<{ annotations: Annotation[] }>;
  // The answers of several questions over one range; Column.query is the index of its question.
  query(questions: Question[], fromMs: number, toMs: number): Promise<Column[]>;
  // Whether a node that was missing in an earlier answer has answered since the last call. The
  // data that were loaded before then lack this node.
  regained(): boolean;
  rights(): Promise<Rights>;
  // Raises the rights of this page, until it is closed, to those of a token.
  raise(token: string): Promise<Rights>;
  annotate(text: string, atMs: number, tags: Record<string, string>): Promise<void>;
  restartWithout(hosts: string[]): Promise<void>;
  // Calls `take` for each event until the stream ends (a rejected promise) or is aborted. Only for
  // a running job.
  stream(selections: Selection[], sinceMs: number, signal: AbortSignal, take: (event: StreamEvent) => void): Promise<void>;
}

// The series that a stream follows: all series of a metric with these tags.
export interface Selection {
  metric: string;
  filter: Record<string, string>;
}

export type StreamEvent =
  | { event: 'series'; data: { id: number; metric: string; tags: Record<string, string> } }
  | { event: 'points'; data: { id: number; t_ns: number[]; values: (number | null)[] } };
