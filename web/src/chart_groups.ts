// The charts in their groups: which exist, which are visible, and the search. Groups with few
// charts share a row (style.css).

import { CUSTOM, groups, Group, matches } from './catalogue';
import { Chart, ChartEvents } from './chart';
import { h } from './dom';
import { expression } from './plan';
import type { Metric } from './source';

export interface GroupEvents extends ChartEvents {
  seen(): void; // called when other charts become visible
  focus(chart: Chart): void;
  arrow(chart: Chart, step: number): void;
}

export class ChartGroups {
  readonly element = h('div', { class: 'groups' });
  private readonly charts = new Map<string, Chart>();
  private readonly opened = new Set<string>(); // groups that show all their metrics
  private readonly observer = new IntersectionObserver((entries) => this.saw(entries), { rootMargin: '200px' });
  observed = false; // the browser has reported which charts are visible
  private metrics: Metric[] = [];
  private search = '';

  constructor(private readonly events: GroupEvents) {}

  layOut(metrics = this.metrics, search = this.search): void {
    this.metrics = metrics;
    this.search = search.trim();
    const text = this.search;
    const sections: HTMLElement[] = [];
    for (const group of groups(metrics)) {
      if (group.id === CUSTOM && !group.metrics.length && !text && metrics.length) sections.push(noCustom());
      const shown = this.shownOf(group);
      if (!shown.length) continue;
      const rest = group.metrics.length - shown.length;
      const section = h(
        'section',
        { class: 'group', id: `group-${group.id}` },
        h('h2', {}, group.title),
        h('div', { class: 'charts' }, ...shown.map((m) => this.chart(m, group).element)),
      );
      if (!text && (rest > 0 || this.opened.has(group.id)) && group.shown < group.metrics.length)
        section.append(h('button', { type: 'button', class: 'more', click: () => this.open(group) }, rest > 0 ? `${rest} more` : 'fewer'));
      sections.push(section);
    }
    if (text && !sections.length) sections.push(h('p', { class: 'nothing' }, `No metric matches “${text}”.`));
    const focused = document.activeElement;
    this.element.replaceChildren(...sections);
    if (focused instanceof HTMLElement && focused.isConnected && focused !== document.body) focused.focus();
    this.hideEmpty();
  }

  private open(group: Group): void {
    if (!this.opened.delete(group.id)) this.opened.add(group.id);
    this.layOut();
  }

  private shownOf(group: Group): Metric[] {
    if (this.search) return group.metrics.filter((m) => matches(m, group.title, this.search));
    return this.opened.has(group.id) ? group.metrics : group.metrics.slice(0, group.shown);
  }

  private chart(metric: Metric, group: Group): Chart {
    let chart = this.charts.get(metric.name);
    if (!chart) {
      chart = new Chart(metric, group.title, this.events);
      this.charts.set(metric.name, chart);
      this.observer.observe(chart.element);
      chart.element.addEventListener('focus', () => this.events.focus(chart!));
      chart.element.addEventListener('keydown', (e) => this.key(chart!, e));
    }
    return chart;
  }

  // Keys on a focused chart: the cross-hair, and all lines.
  private key(chart: Chart, e: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (e.target !== chart.element || (step === undefined && e.key !== 'Enter')) return;
    e.preventDefault();
    if (step === undefined) this.events.toggle(chart);
    else this.events.arrow(chart, step);
  }

  private saw(entries: IntersectionObserverEntry[]): void {
    this.observed = true;
    for (const e of entries) {
      const chart = this.charts.get((e.target as HTMLElement).dataset.metric!);
      if (chart) chart.visible = e.isIntersecting;
    }
    this.events.seen();
  }

  find(metric: string): Chart | undefined {
    return this.charts.get(metric);
  }

  // The charts that need data. A hidden one has no position on the screen, and may get points at
  // any time.
  wanted(): Chart[] {
    return [...this.charts.values()].filter((c) => c.element.isConnected && (c.visible || c.element.hidden));
  }

  // The charts that the window shows now, without the margin that is loaded in advance.
  onScreen(): Set<Chart> {
    const shows = ({ top, bottom }: DOMRect) => bottom > 0 && top < innerHeight;
    return new Set(this.inSight().filter((c) => shows(c.element.getBoundingClientRect())));
  }

  inSight(): Chart[] {
    return [...this.charts.values()].filter((c) => c.element.isConnected && c.visible && !c.element.hidden);
  }

  // For tests: the drawn numbers of the charts.
  drawn() {
    const onScreen = this.onScreen();
    return this.inSight().map((c) => ({
      metric: c.metric.name,
      onScreen: onScreen.has(c),
      mode: c.mode,
      intervalMs: c.intervalMs,
      expressions: c.plan?.questions.map(expression) ?? [],
      asked: c.asked,
      lines: c.lines,
      outliers: c.outliers,
    }));
  }

  // Adds the tags of the loaded lines to `all`, as key=value, until it has `most` of them.
  addTags(all: Set<string>, most: number): void {
    for (const chart of this.charts.values())
      for (const line of chart.lines) {
        if (chart.mode === 'band' || all.size >= most) break;
        for (const [key, value] of Object.entries(line.tags)) all.add(`${key}=${value}`);
      }
  }

  // Hides charts without points, and groups without charts. Returns whether any chart has points.
  hideEmpty(): boolean {
    let any = false;
    for (const chart of this.charts.values()) {
      chart.element.hidden = chart.asked !== null && !chart.hasData() && !chart.failed;
      any ||= chart.hasData();
    }
    for (const section of this.element.querySelectorAll<HTMLElement>('section.group')) {
      const charts = section.querySelectorAll('figure:not([hidden])').length;
      section.dataset.charts = String(charts);
      section.hidden = !charts && !section.querySelector('.more');
    }
    return any;
  }

  // Moves the focus to the next chart, or to the previous one.
  focus(by: number): void {
    const all = [...this.element.querySelectorAll<HTMLElement>('figure:not([hidden])')];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    next?.focus();
    next?.scrollIntoView({ block: 'nearest' });
  }
}

function noCustom(): HTMLElement {
  return h(
    'p',
    { class: 'nothing' },
    'Your program emits nothing yet: ',
    h('code', {}, 'echo "loss 0.5" | sonde put'),
    ', or ',
    h('code', {}, 'sonde.gauge("loss")'),
    ' in Python.',
  );
}
