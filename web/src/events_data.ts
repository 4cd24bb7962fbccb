// Loads spans and annotations; those of a second, compared run at the times of the first.

import type { Side } from './compare';
import type { Loader, Situation } from './loader';
import { filterText } from './model';
import type { Annotation, Source, Span } from './source';
import { SPANS_MAX } from './spans';

export class EventsData {
  annotations: Annotation[] = [];
  private spansAsked = '';

  constructor(
    private readonly source: Source,
    private readonly loader: Loader,
  ) {}

  stale(): void {
    this.spansAsked = '';
  }

  // Events of the whole run.
  async loadAnnotations({ whole, sides }: Situation): Promise<void> {
    const { from, to } = sides ? { from: Math.min(...sides.map((s) => s.from)), to: Math.max(...sides.map((s) => s.to)) } : whole;
    const answer = await this.loader.guarded(() => this.source.annotations(from, to + 1000));
    if (!answer) return;
    if (!sides) this.annotations = answer.annotations;
    else
      this.annotations = answer.annotations.flatMap((a) => {
        const side = sides.find((s) => s.job === a.tags.job);
        return side ? [{ ...a, t_ns: a.t_ns - side.shift * 1e6 }] : [];
      });
  }

  // Events of the range; undefined: the current ones are still valid, or the request failed.
  async loadSpans(s: Situation): Promise<Span[] | undefined> {
    const { range, sides } = s;
    const key = s.follows ? `${Date.now()}` : `${range.from} ${range.to} ${filterText(s.filter)} ${(sides ?? []).map((x) => x.job).join(' ')}`;
    if (key === this.spansAsked) return undefined;
    this.spansAsked = key;
    const all: Span[] = [];
    for (const side of sides ?? [null]) {
      const shift = side?.shift ?? 0;
      const answer = await this.loader.guarded(() => this.source.spans(range.from + shift, range.to + shift, SPANS_MAX, side?.job ?? ''));
      if (!answer) return undefined;
      for (const span of answer.spans) if (passes(s.filter, { host: span.node, ...span.tags })) all.push(side ? atFirst(span, side) : span);
    }
    return key === this.spansAsked ? all : undefined; // otherwise a newer request has started
  }
}

// True if an item with these tags is shown: missing tags do not count.
export function passes(filter: Record<string, string>, tags: Record<string, string>): boolean {
  return Object.entries(filter).every(([k, v]) => (tags[k] ?? v) === v);
}

function atFirst(span: Span, side: Side): Span {
  const by = side.shift * 1e6;
  return { ...span, start_ns: span.start_ns - by, end_ns: span.end_ns && span.end_ns - by };
}
