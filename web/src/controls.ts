// The controls at the right of the header: search, filter, time range, pause, and the buttons.

import { h, say } from './dom';
import type { Job } from './job';
import { filterText, LASTS, parseFilter, View } from './model';

const TAGS_MAX = 500; // maximum number of tags that are suggested for the filter

export interface ControlEvents {
  search(text: string): void;
  filter(tags: Record<string, string>): void;
  last(seconds: number): void;
  pause(): void;
  share(): void;
  export(): void;
  annotate(): void;
  restart(): void;
  theme(): void;
  keys(): void;
}

export class Controls {
  readonly element: HTMLElement;
  readonly tagNames = h('datalist', { id: 'tags' });
  readonly search = h('input', { type: 'search', placeholder: 'search  /', 'aria-label': 'search the metrics', spellcheck: 'false' });
  private readonly filter = h('input', { type: 'text', placeholder: 'filter: host=n1', 'aria-label': 'filter by tags, such as host=n1', list: 'tags', spellcheck: 'false' });
  private readonly lasts = h('select', { 'aria-label': 'time range' });
  private readonly pause: HTMLButtonElement;
  private readonly annotate: HTMLButtonElement;
  private readonly restart: HTMLButtonElement;

  constructor(events: ControlEvents) {
    const button = (text: string, click: () => void, label = text) => h('button', { type: 'button', 'aria-label': label, click }, text);
    this.pause = h('button', { type: 'button', class: 'pause', click: () => events.pause() }, 'pause');
    this.annotate = button('annotate', () => events.annotate());
    this.restart = button('restart…', () => events.restart(), 'restart without a node');
    for (const [seconds, text] of LASTS) this.lasts.append(h('option', { value: String(seconds) }, text));
    this.lasts.append(h('option', { value: 'chosen', hidden: true }, 'chosen'));
    this.element = h(
      'div',
      { class: 'controls' },
      this.search,
      this.filter,
      this.lasts,
      this.pause,
      this.annotate,
      this.restart,
      button('copy link', () => events.share()),
      button('export', () => events.export()),
      button('◐', () => events.theme(), 'dark or light'),
      button('?', () => events.keys(), 'keys'),
    );
    this.search.addEventListener('input', () => events.search(this.search.value));
    this.filter.addEventListener('change', () => events.filter(parseFilter(this.filter.value)));
    this.lasts.addEventListener('change', () => events.last(Number(this.lasts.value) || 0));
  }

  // Sets the fields from the view, after the address has changed.
  fill(view: View): void {
    this.search.value = view.search;
    this.filter.value = filterText(view.filter);
  }

  show(live: boolean, view: View): void {
    const follows = live && !view.range;
    say(this.pause, live ? (follows ? 'pause' : 'live') : 'whole run');
    this.pause.disabled = !live && !view.range;
    this.lasts.value = view.range ? 'chosen' : String(view.last);
    if (!view.range && !LASTS.some(([s]) => s === view.last)) this.lasts.value = '0';
  }

  offer(actions: { annotate: boolean; restart: boolean }): void {
    this.annotate.hidden = !actions.annotate;
    this.restart.hidden = !actions.restart;
  }

  // Suggests values for the filter. `add` adds tags of lines, as key=value, up to a maximum.
  suggest(job: Job, add: (all: Set<string>, most: number) => void): void {
    const all = new Set(job.nodes.slice(0, TAGS_MAX).map((n) => `host=${n.host}`));
    add(all, TAGS_MAX);
    if (all.size === this.tagNames.childElementCount) return;
    this.tagNames.replaceChildren(...[...all].map((value) => h('option', { value })));
  }
}
