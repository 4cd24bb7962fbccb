// Decides which parts of the page a frame draws. A part is stale when its data, its cross-hair or
// its range have changed, and, in a live view, when time has moved it by half a pixel. Each frame
// draws a limited number of stale parts (Pace). The other parts wait for the next frames, in turns.
// With 100 live charts, each chart is drawn less often, but the page keeps its frame rate.

import type { Range } from './model';

export interface Part<T> {
  pixels(): number; // measures the width; called before each draw()
  draw(shown: T): boolean; // true: an animation goes on, so the part needs the next frame, too
}

const LATE_MS = 25; // between two frames of a screen that shows 60 a second
const FIRST = 16;
const MOST = 256;
// The bound doubles after this number of frames in time at the bound, those of one second. Each
// higher bound that makes a frame late doubles the number, up to the frames of 16 seconds.
const CALM = 60;
const CALMEST = 16 * CALM;

// The number of parts that a frame draws. It halves after a late frame, and grows by one after a
// frame in time, up to a bound: just below the number that last made a frame late. The bound rises
// again from time to time, and less and less often if that makes a frame late.
export class Pace {
  most = FIRST;
  private last = -Infinity;
  private bound = MOST;
  private calm = 0; // frames in time at the bound
  private patience = CALM; // the number of them after which the bound rises
  private raised = false; // the bound has risen since the last late frame
  private late = false;

  // `onward`: the previous frame requested this one. Otherwise the time between them includes a
  // rest.
  frame(nowMs: number, onward: boolean): void {
    const step = nowMs - this.last;
    this.last = nowMs;
    if (!onward) return;
    // Of several late frames in a row, the first one shows how much a frame can draw.
    const again = this.late;
    this.late = step > LATE_MS;
    if (this.late) {
      if (!again) {
        this.bound = Math.max(1, this.most - 1);
        this.patience = this.raised ? Math.min(CALMEST, this.patience * 2) : CALM;
        this.raised = false;
      }
      this.most = Math.max(1, this.most >> 1);
      this.calm = 0;
    } else if (this.most < this.bound) {
      this.most++;
    } else if (++this.calm >= this.patience) {
      if (this.raised) this.patience = CALM;
      this.raised = true;
      this.bound = Math.min(MOST, this.bound * 2);
      this.calm = 0;
    }
  }
}

export class Frames<T> {
  private readonly stale = new Set<Part<T>>(); // oldest first
  private readonly drawnTo = new Map<Part<T>, Range>(); // least recently drawn first
  private readonly pace = new Pace();
  private asked = false;
  private rested = true;
  private timer: ReturnType<typeof setTimeout> | undefined;

  // `parts` returns the visible parts; `begin` runs first in each frame and returns the arguments
  // of draw().
  constructor(
    private readonly parts: () => Iterable<Part<T>>,
    private readonly begin: () => { shown: T; range: Range; follows: boolean },
  ) {}

  // Draws this part, or all parts, as soon as a frame has room.
  mark(part?: Part<T>): void {
    if (part) this.stale.add(part);
    else for (const p of this.inTurn()) this.stale.add(p);
    this.ask();
  }

  // The visible parts, least recently drawn first.
  private inTurn(): Set<Part<T>> {
    const visible = new Set(this.parts());
    const fresh = [...visible].filter((p) => !this.drawnTo.has(p));
    return new Set([...fresh, ...[...this.drawnTo.keys()].filter((p) => visible.has(p))]);
  }

  private ask(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((t) => this.frame(t));
  }

  private frame(nowMs: number): void {
    this.asked = false;
    clearTimeout(this.timer);
    this.pace.frame(nowMs, !this.rested);
    const { shown, range, follows } = this.begin();
    const seen = this.inTurn();
    // All widths are read before the first part is drawn: reading one after another part has
    // changed a text makes the browser lay out the page again.
    const widths = new Map([...seen].map((p) => [p, p.pixels()]));
    if (follows) for (const [p, pixels] of widths) if (moved(this.drawnTo.get(p), range, pixels)) this.stale.add(p);
    let room = this.pace.most;
    for (const p of [...this.stale]) {
      if (room === 0) break;
      this.stale.delete(p);
      if (!seen.has(p)) continue; // marked again when it becomes visible
      room--;
      this.drawnTo.delete(p); // to the end
      this.drawnTo.set(p, { ...range });
      if (p.draw(shown)) this.stale.add(p);
    }
    this.rested = this.stale.size === 0;
    if (!this.rested) this.ask();
    else if (follows) this.timer = setTimeout(() => this.ask(), soonest(widths.values(), range));
  }
}

// True if time has moved the part by half a pixel.
function moved(before: Range | undefined, range: Range, pixels: number): boolean {
  return !before || (range.to - before.to) * pixels >= (range.to - range.from) / 2;
}

// Milliseconds until the widest part has moved by half a pixel; at least 33, so at most 30 frames a
// second.
function soonest(widths: Iterable<number>, range: Range): number {
  let widest = 1;
  for (const pixels of widths) widest = Math.max(widest, pixels);
  return Math.min(1000, Math.max(33, (range.to - range.from) / widest / 2));
}
