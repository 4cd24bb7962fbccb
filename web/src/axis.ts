// The time axis under a canvas: local times or, when two runs are compared, the time since the
// start.

import * as format from './format';
import type { Range } from './model';
import { timeTicks } from './scale';
import type { Theme } from './theme';

const LABEL_PX = 92; // room for one label

// `baseline`: of the texts; `origin`: the start that times count from; null: times of day. `taken`:
// pixels that another text takes, so that labels there are left out.
export function drawTimeAxis(c: CanvasRenderingContext2D, theme: Theme, range: Range, origin: number | null, width: number, baseline: number, taken: Range | null = null): void {
  const shift = origin ?? 0;
  const { step, ticks } = timeTicks(range.from - shift, range.to - shift, Math.max(2, width / LABEL_PX), origin !== null);
  c.fillStyle = theme.quiet;
  c.textBaseline = 'alphabetic';
  c.textAlign = 'left';
  for (const t of ticks) {
    const at = ((t - (range.from - shift)) / (range.to - range.from)) * width;
    const text = origin !== null ? format.elapsed(t, step) : step >= 86400e3 ? format.dayOf(t).slice(5) : format.clock(t, step);
    const room = c.measureText(text).width;
    const left = at < 24 ? at : at > width - 24 ? at - room : at - room / 2;
    if (taken && left < taken.to && left + room > taken.from) continue;
    c.fillText(text, left, baseline);
  }
}

// The text at the foot of the cross-hair: the time, and the time since the start.
export function timeAtHover(t: number, range: Range, start: number, origin: number | null): string {
  const step = (range.to - range.from) / 100;
  const since = format.elapsed(t - start, step);
  return origin === null ? `${format.clock(t, Math.min(1000, step))}  ${since}` : since;
}
