// What the report of a Dask cluster's tasks shows at the moment: the recording, the range of time,
// the selected prefix and task, and the colours.

import { lanes, stretches, timesOf } from './report_data';
import type { Lane, Packed, Stretch, Times } from './report_data';
import type { Range } from './model';
import { readTheme } from './theme';
import type { Theme } from './theme';

export const OWN_COLOURS = 7; // for the prefixes with the most time; the others share the last one

export class Scene {
  readonly times: Times;
  readonly lanes: Lane[];
  readonly stretches: Stretch[];
  readonly names: Map<number, string>; // of workers
  readonly innerOf = new Map<number, number[]>();
  readonly whole: Range;
  range: Range;
  brush: Range | null = null;
  lit = -1; // the selected prefix; -1: all
  chosen: { lane: number; at: number } | null = null; // with the keyboard
  theme: Theme = readTheme();

  constructor(readonly data: Packed) {
    this.times = timesOf(data);
    this.lanes = lanes(data, this.times);
    this.stretches = stretches(data);
    this.names = new Map(data.workers.map((w) => [w.worker, w.name]));
    data.inner.task.forEach((task, i) => {
      const mine = this.innerOf.get(task);
      if (mine) mine.push(i);
      else this.innerOf.set(task, [i]);
    });
    this.whole = this.wholeRange();
    this.range = this.whole;
  }

  private wholeRange(): Range {
    let from = Infinity;
    let to = -Infinity;
    for (const [a, b] of this.data.periods) {
      from = Math.min(from, this.data.origin_ms + a / 1000);
      to = Math.max(to, this.data.origin_ms + b / 1000);
    }
    for (let i = 0; i < this.times.from.length; i++) {
      from = Math.min(from, this.times.from[i]!);
      to = Math.max(to, this.times.to[i]!);
    }
    return from < to ? { from, to } : { from: this.data.origin_ms, to: this.data.origin_ms + 1000 };
  }

  colourIndex(prefix: number): number {
    return prefix < 0 || prefix >= OWN_COLOURS ? OWN_COLOURS : prefix;
  }

  colour(prefix: number): string {
    return this.theme.series[this.colourIndex(prefix)]!;
  }

  chosenTask(): number | undefined {
    return this.chosen ? this.lanes[this.chosen.lane]!.tasks[this.chosen.at] : undefined;
  }
}
