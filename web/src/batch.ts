// Sends questions that are asked at the same time as one request, because each request costs a
// message to every node of the job.

import type { Column } from './columns';
import type { Question } from './plan';
import { Refused } from './source';

export const QUESTIONS_MAX = 48; // of a joint request: so many that the first answers do not wait

type Send = (questions: Question[], fromMs: number, toMs: number) => Promise<Column[]>;

interface Asked {
  questions: Question[];
  fromMs: number;
  toMs: number;
  resolve: (columns: Column[]) => void;
  reject: (error: unknown) => void;
}

export class Batch {
  private waiting: Asked[] = [];

  constructor(private readonly send: Send) {}

  // As Source.query(). The answer may begin some buckets before fromMs.
  query(questions: Question[], fromMs: number, toMs: number): Promise<Column[]> {
    return new Promise((resolve, reject) => {
      if (!this.waiting.length) queueMicrotask(() => this.flush());
      this.waiting.push({ questions, fromMs, toMs, resolve, reject });
    });
  }

  private flush(): void {
    const requests: Asked[][] = [];
    for (const asked of this.waiting.splice(0)) {
      const other = requests.find((request) => fits(request, asked));
      if (other) other.push(asked);
      else requests.push([asked]);
    }
    for (const request of requests) void this.sendOne(request);
  }

  private async sendOne(request: Asked[]): Promise<void> {
    try {
      const questions = request.flatMap((a) => a.questions);
      const fromMs = Math.min(...request.map((a) => a.fromMs));
      const columns = await this.send(questions, fromMs, request[0]!.toMs);
      let first = 0;
      for (const { questions, resolve } of request) {
        const begin = first;
        const end = (first += questions.length);
        const own = columns.filter((c) => c.query >= begin && c.query < end);
        resolve(own.map((c) => ({ ...c, query: c.query - begin })));
      }
    } catch (error) {
      // The server refuses all questions because of one.
      if (error instanceof Refused && request.length > 1) for (const asked of request) void this.sendOne([asked]);
      else for (const asked of request) asked.reject(error);
    }
  }
}

// Ranges are whole buckets, so those of one view begin at slightly different times.
function fits(request: Asked[], asked: Asked): boolean {
  const all = [...request, asked];
  const widest = Math.max(...all.flatMap((a) => a.questions.map((q) => q.intervalMs)));
  const begins = all.map((a) => a.fromMs);
  const count = all.reduce((n, a) => n + a.questions.length, 0);
  const near = Math.max(...begins) - Math.min(...begins) < widest;
  return near && asked.toMs === request[0]!.toMs && count <= QUESTIONS_MAX;
}
