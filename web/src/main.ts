// The page: wires the parts, keeps the clock, the address and the keyboard.

import { Annotation, Api, FindingAnswer, Metric, Node, Span, Status } from './api';
import { CUSTOM, groups, Group, matches } from './catalogue';
import { Chart, Shown } from './chart';
import { CompareBar, moved, runsOf, Side, sidesOf, wholeOf } from './compare';
import { h, say } from './dom';
import { commands, ExportDialog, Scene } from './export';
import { all as allFindings, Finding, FindingStrip } from './findings';
import * as format from './format';
import { firstOf, Header, lastOf } from './header';
import { HeatMap, rows, sorted } from './heatmap';
import { dropPartial, forget, Line, lines } from './lines';
import { again, Loader, mergeTail, newest, Situation } from './loader';
import { EMPTY, filterText, fromHash, LASTS, panned, parseFilter, Range, toHash, View, zoomed } from './model';
import { Overview } from './overview';
import { aligned, braces, interval, intervalText, plan } from './plan';
import { Placed, Spans, SPANS_MAX } from './spans';
import { applyStored, readTheme, toggle } from './theme';

const LIVE_MS = 2000; // between two looks at the job: status, annotations, spans
const METRICS_MANY_MS = 15000; // between two lists of metrics of many nodes: each of them has to be asked
const METRICS_MANY_NODES = 16;
const IDLE_MS = 10000; // the same for a recording: is the server still there?
const HEAT_MS = 4000;
const FINDINGS_MS = 15000; // between two comparisons of the members of a running job
const FINDINGS_MANY_MS = 60000; // … of many nodes
const TAGS_MAX = 500; // that are suggested for the filter
const RECENT_S = 900; // what a long running job shows at first

const KEYS: [string, string][] = [
  ['/', 'search the metrics'],
  ['j k', 'next and previous chart'],
  ['h l', 'earlier, later'],
  ['+ -', 'zoom in and out'],
  ['0', 'the whole run'],
  ['space', 'pause, go on'],
  ['n p', 'next and previous finding or annotation'],
  ['g', 'nodes'],
  ['s', 'spans'],
  ['c', 'compare two runs'],
  ['e', 'export what is seen'],
  ['t', 'dark or light'],
  ['?', 'this list'],
];

class Page {
  private readonly api = new Api();
  private readonly loader = new Loader(
    this.api,
    () => this.situation(),
    () => this.redraw(),
  );
  private view: View = fromHash(location.hash);
  private status: Status | null = null;
  private nodes: Node[] = [];
  private metrics: Metric[] = [];
  private annotations: Annotation[] = [];
  private found: FindingAnswer[] = [];
  private findings: Finding[] = [];
  private compared: number | null = null; // measures
  private findingsAt = -Infinity;
  private findingsOf = '';
  private sides: Side[] | null = null;
  private metricsAt = 0;
  private dropped = 0;
  private pointsPerSecond = 0;
  private pointsBefore: { at: number; points: number } | null = null;
  private live = false;
  private charts = new Map<string, Chart>();
  private opened = new Set<string>(); // groups that show all their metrics
  private hover: number | null = null;
  private brush: Range | null = null;
  private selection: { range: Range; label: string } | null = null;
  private theme = readTheme();
  private drawing = false;
  private lastDrawn = 0;
  private spansAsked = '';
  private heatAsked = '';
  private heatBusy = false;
  private overviewAsked = '';
  private pausedAt: number | null = null;

  // ---- elements

  private readonly search = h('input', { type: 'search', placeholder: 'search  /', 'aria-label': 'search the metrics', spellcheck: 'false' });
  private readonly filter = h('input', { type: 'text', placeholder: 'filter: host=n1', 'aria-label': 'filter by tags, as host=n1', list: 'tags', spellcheck: 'false' });
  private readonly lasts = h('select', { 'aria-label': 'time range' });
  private readonly pause = h('button', { type: 'button', class: 'pause', click: () => this.togglePause() }, 'pause');
  private readonly share = h('button', { type: 'button', click: () => void this.copy(location.href, 'the link is copied; it needs a session of this job') }, 'copy link');
  private readonly exporting = new ExportDialog((text) => void this.copy(text, 'copied'));
  private readonly compare = new CompareBar((runs) => this.chooseRuns(runs));
  private readonly strip = new FindingStrip((f) => this.goToFinding(f));
  private readonly header = new Header(
    h(
      'div',
      { class: 'controls' },
      this.search,
      this.filter,
      this.lasts,
      this.pause,
      this.share,
      h('button', { type: 'button', click: () => this.export() }, 'export'),
      h('button', { type: 'button', 'aria-label': 'dark or light', click: () => this.toggleTheme() }, '◐'),
      h('button', { type: 'button', 'aria-label': 'keys', click: () => this.help.showModal() }, '?'),
    ),
  );
  private readonly banner = h('p', { class: 'banner', role: 'status', hidden: true });
  private readonly overview = new Overview((range) => this.zoom(range));
  private readonly heat = new HeatMap({
    hover: (t) => this.setHover(t),
    zoom: (r) => this.zoom(r),
    brush: (r) => this.setBrush(r),
    node: (host) => this.setFilter({ ...this.view.filter, host }),
    metric: (name) => this.set({ heat: name }),
    sort: (heatSort) => this.set({ heatSort }),
  });
  private readonly groupsElement = h('div', { class: 'groups' });
  private readonly spans = new Spans({
    hover: (t) => this.setHover(t),
    brush: (r) => this.setBrush(r),
    zoom: (r) => this.zoom(r),
    span: (p) => this.selectSpan(p),
  });
  private readonly empty = h('section', { class: 'empty', hidden: true });
  private readonly metricNames = h('datalist', { id: 'metrics' });
  private readonly tagNames = h('datalist', { id: 'tags' });
  private readonly query = h('code', { class: 'query', tabindex: '0' });
  private readonly about = h('span', { class: 'version' });
  private readonly note = h('span', { role: 'status', class: 'note' });
  private readonly help = h('dialog', { 'aria-label': 'keys' });
  private readonly observer = new IntersectionObserver((entries) => this.sawCharts(entries), { rootMargin: '200px' });

  start(): void {
    for (const [seconds, text] of LASTS) this.lasts.append(h('option', { value: String(seconds) }, text));
    this.lasts.append(h('option', { value: 'chosen', hidden: true }, 'chosen'));
    this.help.append(
      h('h2', {}, 'Keys'),
      h('dl', {}, ...KEYS.flatMap(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)])),
      h('p', {}, 'Drag over a chart to zoom all of them. A click on a node filters to it; a click on a span shows it alone, with the peak and mean of every chart.'),
      h('form', { method: 'dialog', submit: () => undefined }, h('button', { type: 'button', click: () => this.help.close() }, 'close')),
    );
    document.body.append(
      this.header.element,
      this.banner,
      h('main', {}, this.strip.element, this.compare.element, this.overview.element, this.empty, this.heat.element, this.groupsElement, this.spans.element),
      h(
        'footer',
        {},
        this.about,
        h('span', { class: 'line' }, this.query, h('button', { type: 'button', click: () => void this.copy(this.query.textContent ?? '', 'copied') }, 'copy')),
        this.note,
      ),
      this.metricNames,
      this.tagNames,
      this.help,
      this.exporting.element,
    );
    this.search.value = this.view.search;
    this.filter.value = filterText(this.view.filter);
    this.heat.order.value = this.view.heatSort;
    this.heat.element.hidden = this.spans.element.hidden = true;
    this.search.addEventListener('input', () => this.set({ search: this.search.value }));
    this.filter.addEventListener('change', () => this.setFilter(parseFilter(this.filter.value)));
    this.lasts.addEventListener('change', () => {
      this.selection = null;
      this.pausedAt = null;
      this.set({ range: null, last: Number(this.lasts.value) || 0 });
    });
    document.addEventListener('keydown', (e) => this.key(e));
    window.addEventListener('resize', () => {
      this.redraw();
      void this.load();
    });
    window.addEventListener('hashchange', () => this.readAddress());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.themeChanged());
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) void this.tick();
    });
    void this.run();
  }

  private async run(): Promise<void> {
    let first = true;
    for (;;) {
      await this.tick();
      if (first && this.status) {
        first = false;
        if (this.live && !location.hash && this.whole().to - this.whole().from > RECENT_S * 1000 * 1.5) this.set({ last: RECENT_S });
      }
      await new Promise((go) => setTimeout(go, this.loader.connection.state === 'lost' ? 250 : this.live || !this.nodes.length ? LIVE_MS : IDLE_MS));
    }
  }

  // ---- what there is

  private async tick(): Promise<void> {
    if (document.hidden && this.status) return;
    if (this.loader.open()) {
      const [status, nodes, metrics] = await Promise.all([
        this.loader.guarded(() => this.api.status()),
        this.loader.guarded(() => this.api.nodes()),
        this.metricsDue() ? this.loader.guarded(() => this.api.metrics()) : { metrics: this.metrics },
      ]);
      if (status && nodes && metrics) {
        this.takeStatus(status, nodes.nodes);
        this.takeMetrics(metrics.metrics);
        await Promise.all([this.takeAnnotations(), this.takeDropped(), this.takeFindings(), this.loadSpans(), this.loadOverview(), this.loadHeat(), this.load()]);
        await this.loader.poll(this.visible());
      }
    }
    this.showConnection();
    this.redraw();
  }

  private metricsDue(): boolean {
    const due = this.nodes.length <= METRICS_MANY_NODES || Date.now() - this.metricsAt >= METRICS_MANY_MS;
    if (due) this.metricsAt = Date.now();
    return due;
  }

  private takeStatus(status: Status, nodes: Node[]): void {
    const now = this.api.clock.now();
    this.status = status;
    this.nodes = nodes.sort((a, b) => a.host.localeCompare(b.host, 'en', { numeric: true }));
    const connected = status.hub?.nodes.some((n) => n.connected) ?? false;
    const ended = status.runs.length > 0 && status.runs.every((r) => r.end_ns !== undefined);
    this.live = !ended && (connected || nodes.some((n) => n.state === 'live'));
    const before = this.pointsBefore;
    if (before && now > before.at) this.pointsPerSecond = Math.max(0, ((status.points - before.points) * 1000) / (now - before.at));
    this.pointsBefore = { at: now, points: status.points };
    const files = status.files;
    const folder = files[0]?.path.replace(/\/[^/]*$/, '') ?? '';
    say(this.about, `sonde ${status.version}${folder ? ` · ${files.length === 1 ? files[0]!.path : folder}` : ''}`);
    document.documentElement.dataset.live = String(this.live);
    this.updateSides();
  }

  private takeMetrics(metrics: Metric[]): void {
    if (metrics.length === this.metrics.length && metrics.every((m, i) => m.name === this.metrics[i]!.name)) return;
    this.metrics = metrics;
    this.metricNames.replaceChildren(...metrics.map((m) => h('option', { value: m.name })));
    this.layOut();
  }

  private async takeAnnotations(): Promise<void> {
    const { from, to } = this.sides ? { from: Math.min(...this.sides.map((s) => s.from)), to: Math.max(...this.sides.map((s) => s.to)) } : this.whole();
    const answer = await this.loader.guarded(() => this.api.annotations(from, to + 1000));
    if (!answer) return;
    const sides = this.sides;
    if (!sides) this.annotations = answer.annotations;
    else
      this.annotations = answer.annotations.flatMap((a) => {
        const side = sides.find((s) => s.job === a.tags.job);
        return side ? [{ ...a, t_ns: a.t_ns - side.shift * 1e6 }] : [];
      });
  }

  private async takeDropped(): Promise<void> {
    if (!this.metrics.some((m) => m.name === 'sonde_dropped_total')) return;
    const answer = await this.loader.guarded(() => this.api.series('sonde_dropped_total', 1000));
    if (answer) this.dropped = answer.series.reduce((sum, s) => sum + (s.value ?? 0), 0);
  }

  // Compared are whole runs: a recording once, a running job now and then.
  private async takeFindings(): Promise<void> {
    const every = this.nodes.length > METRICS_MANY_NODES ? FINDINGS_MANY_MS : FINDINGS_MS;
    const of = this.nodes.map((n) => `${n.host} ${n.job} ${this.live ? '' : n.last_ns}`).join();
    const due = this.live ? performance.now() - this.findingsAt >= every : of !== this.findingsOf;
    if (due && this.nodes.length) {
      this.findingsAt = performance.now();
      this.findingsOf = of;
      const answer = await this.loader.guarded(() => this.api.findings());
      if (answer) {
        this.found = answer.findings;
        this.compared = answer.measures.length;
      } else this.findingsOf = '';
    }
    const seen = { status: this.status, nodes: this.nodes, live: this.live, whole: this.whole(), dropped: this.dropped };
    const found = this.sides ? [] : this.found.filter((f) => this.passesTags(f.tags));
    this.findings = allFindings(seen, found);
    this.strip.update(this.findings, this.compared);
  }

  private passesTags(tags: Record<string, string>): boolean {
    return Object.entries(this.view.filter).every(([k, v]) => (tags[k] ?? v) === v);
  }

  // The place and the time of a finding: its chart, and a third of the range on each side.
  private goToFinding(f: Finding): void {
    const whole = this.whole();
    const margin = Math.max(5000, (f.to - f.from) / 3);
    this.selection = { range: { from: f.from, to: f.to }, label: f.text };
    this.brush = null;
    this.pausedAt = null;
    this.set({ range: { from: Math.max(whole.from, f.from - margin), to: Math.min(whole.to, f.to + margin) }, search: '' });
    this.search.value = '';
    const chart = f.metric === undefined ? undefined : this.charts.get(f.metric);
    if (chart?.element.isConnected) this.goTo(chart.element, chart.element);
    else if (f.span !== undefined) this.goTo(this.spans.element, this.spans.canvas);
    else this.goTo(this.heat.element, this.heat.canvas);
  }

  // ---- two runs

  private updateSides(): void {
    const runs = runsOf(this.nodes, this.status);
    const sides = this.live ? null : sidesOf(this.view.runs, runs);
    const key = (all: Side[] | null) => (all ?? []).map((s) => `${s.job} ${s.shift}`).join();
    if (key(sides) !== key(this.sides)) {
      this.loader.stale();
      this.overviewAsked = this.spansAsked = '';
    }
    this.sides = sides;
    this.compare.update(this.live ? [] : runs, sides);
  }

  private chooseRuns(runs: string[]): void {
    this.selection = null;
    this.set({ runs, range: null });
    void this.tick();
  }

  // ---- ranges

  private whole(): Range {
    if (this.sides) return wholeOf(this.sides);
    const first = firstOf(this.nodes, this.status);
    const last = lastOf(this.nodes, this.status);
    const now = this.api.clock.now();
    if (first === undefined) return { from: now - 60000, to: now };
    const to = this.live ? Math.max(now, (last ?? 0) / 1e6) : last! / 1e6;
    const from = first / 1e6;
    // A run of one instant has a second around it.
    return to - from < 1 ? { from: from - 500, to: from + 500 } : { from, to };
  }

  private range(): Range {
    const whole = this.whole();
    if (this.view.range) return this.view.range;
    return { from: this.view.last ? Math.max(whole.from, whole.to - this.view.last * 1000) : whole.from, to: whole.to };
  }

  private situation(): Situation {
    return {
      range: this.range(),
      whole: this.whole(),
      filter: this.view.filter,
      follows: this.live && !this.view.range,
      nodes: this.nodes.length,
      sides: this.sides,
    };
  }

  private set(change: Partial<View>): void {
    this.view = { ...this.view, ...change };
    const hash = toHash(this.view);
    if (hash !== location.hash) history.replaceState(null, '', location.pathname + location.search + hash);
    this.updateSides();
    this.showControls();
    if ('search' in change || 'filter' in change) this.layOut();
    void this.reload();
    this.redraw();
  }

  private readAddress(): void {
    this.view = { ...EMPTY, ...fromHash(location.hash) };
    this.search.value = this.view.search;
    this.filter.value = filterText(this.view.filter);
    this.updateSides();
    this.layOut();
    this.showControls();
    void this.reload();
    this.redraw();
  }

  private async reload(): Promise<void> {
    if (!this.status || !this.loader.open()) return;
    await Promise.all([this.load(), this.loadSpans(), this.loadHeat()]);
    this.redraw();
  }

  private zoom(range: Range | null): void {
    this.brush = null;
    this.selection = null;
    this.pausedAt = null;
    this.set({ range });
  }

  private setFilter(filter: Record<string, string>): void {
    this.filter.value = filterText(filter);
    this.set({ filter });
  }

  private togglePause(): void {
    if (this.view.range) {
      this.pausedAt = null;
      this.zoom(null);
    } else {
      this.pausedAt = Date.now();
      this.set({ range: this.range() });
    }
  }

  private selectSpan(p: Placed): void {
    const margin = Math.max(0.01, (p.to - p.from) * 0.05);
    const around = { from: p.from - margin, to: p.to + margin };
    this.selection = { range: { from: p.from, to: p.to }, label: p.span.name };
    this.brush = null;
    this.set({ range: around });
  }

  // ---- charts

  private layOut(): void {
    const all = groups(this.metrics);
    const text = this.view.search.trim();
    const sections: HTMLElement[] = [];
    for (const group of all) {
      if (group.id === CUSTOM && !group.metrics.length && !text && this.metrics.length) sections.push(this.noCustom());
      const shown = this.shownOf(group, text);
      if (!shown.length) continue;
      const rest = group.metrics.length - shown.length;
      const section = h(
        'section',
        { class: 'group', id: `group-${group.id}` },
        h('h2', {}, group.title),
        h('div', { class: 'charts' }, ...shown.map((m) => this.chart(m, group).element)),
      );
      if (!text && (rest > 0 || this.opened.has(group.id)) && group.shown < group.metrics.length)
        section.append(
          h(
            'button',
            {
              type: 'button',
              class: 'more',
              click: () => {
                if (!this.opened.delete(group.id)) this.opened.add(group.id);
                this.layOut();
              },
            },
            rest > 0 ? `${rest} more` : 'fewer',
          ),
        );
      sections.push(section);
    }
    if (text && !sections.length)
      sections.push(h('p', { class: 'nothing' }, `No metric matches “${text}”.`));
    const focused = document.activeElement;
    this.groupsElement.replaceChildren(...sections);
    if (focused instanceof HTMLElement && focused.isConnected && focused !== document.body) focused.focus();
    this.showGroups();
  }

  private shownOf(group: Group, text: string): Metric[] {
    if (text) return group.metrics.filter((m) => matches(m, group.title, text));
    return this.opened.has(group.id) ? group.metrics : group.metrics.slice(0, group.shown);
  }

  private noCustom(): HTMLElement {
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

  private chart(metric: Metric, group: Group): Chart {
    let chart = this.charts.get(metric.name);
    if (!chart) {
      chart = new Chart(metric, group.title, {
        hover: (c, t) => this.setHover(t, c),
        brush: (r) => this.setBrush(r),
        zoom: (r) => this.zoom(r),
        toggle: (c) => this.toggleLines(c),
      });
      this.charts.set(metric.name, chart);
      this.observer.observe(chart.element);
      chart.element.addEventListener('focus', () => this.showQuery(chart!));
    }
    return chart;
  }

  private toggleLines(chart: Chart): void {
    if (chart.sourceSeries <= 8) return;
    chart.allLines = !chart.allLines;
    chart.asked = null;
    void this.load();
  }

  private sawCharts(entries: IntersectionObserverEntry[]): void {
    for (const e of entries) {
      const chart = this.charts.get((e.target as HTMLElement).dataset.metric!);
      if (chart) chart.visible = e.isIntersecting;
    }
    void this.load();
    this.redraw();
  }

  private visible(): Chart[] {
    return [...this.charts.values()].filter((c) => c.element.isConnected && (c.visible || c.element.hidden));
  }

  private async load(): Promise<void> {
    if (!this.status || !this.loader.open()) return;
    await this.loader.load(this.visible());
    this.suggestTags();
    this.showGroups();
    this.redraw();
  }

  // What the filter can be, of the lines that are there.
  private suggestTags(): void {
    const all = new Set(this.nodes.slice(0, TAGS_MAX).map((n) => `host=${n.host}`));
    for (const chart of this.charts.values())
      for (const line of chart.lines) {
        if (chart.mode === 'band' || all.size >= TAGS_MAX) break;
        for (const [key, value] of Object.entries(line.tags)) all.add(`${key}=${value}`);
      }
    if (all.size === this.tagNames.childElementCount) return;
    this.tagNames.replaceChildren(...[...all].map((value) => h('option', { value })));
  }

  // A chart without a point is not there, nor is a group without charts.
  private showGroups(): void {
    let any = false;
    for (const chart of this.charts.values()) {
      chart.element.hidden = chart.asked !== null && !chart.hasData() && !chart.failed;
      any ||= chart.hasData();
    }
    for (const section of this.groupsElement.querySelectorAll<HTMLElement>('section.group'))
      section.hidden = !section.querySelector('figure:not([hidden])') && !section.querySelector('.more');
    const nothing = this.status !== null && this.status.points === 0 && !any && firstOf(this.nodes, this.status) === undefined;
    this.empty.hidden = !nothing;
    if (nothing && !this.empty.firstChild)
      this.empty.append(
        h('h2', {}, 'No point yet'),
        h('p', {}, 'Whatever is measured appears here by itself. At level 1 that is what the program emits: ', h('code', {}, 'echo "loss 0.5" | sonde put')),
      );
    this.overview.element.hidden = nothing;
  }

  // ---- the overview and the heat map

  private overviewMetric(): Metric | undefined {
    return this.metrics.find((m) => !m.source) ?? this.metrics.find((m) => m.name === 'cpu_percent') ?? this.metrics[0];
  }

  private async loadOverview(): Promise<void> {
    const metric = this.overviewMetric();
    if (!metric) return;
    const whole = this.whole();
    this.overview.whole = whole;
    const i = interval((whole.to - whole.from) * 1.2, this.overview.canvas.clientWidth || 800);
    const key = `${metric.name} ${i} ${(this.sides ?? []).map((s) => s.job).join(' ')}`;
    const fresh = key !== this.overviewAsked;
    const from = fresh ? whole.from : newest(this.overview.lines) - again(i);
    if (!fresh && !this.live) return;
    const asked = aligned({ from: Number.isFinite(from) ? from : whole.from, to: whole.to }, i);
    const got = await this.overviewLines(metric, i, asked);
    if (!got) return;
    if (fresh) {
      this.overview.lines = got;
      this.overview.intervalMs = i;
      this.overviewAsked = key;
    } else mergeTail(this.overview.lines, got, asked.from);
    this.overview.setMetric(metric.name);
  }

  private async overviewLines(metric: Metric, i: number, asked: Range): Promise<Line[] | undefined> {
    const all: Line[] = [];
    for (const side of this.sides ?? [null]) {
      const shift = side?.shift ?? 0;
      const filter: Record<string, string> = side ? { job: side.job } : {};
      const columns = await this.loader.guarded(() => this.api.query(plan(metric, 'band', i, filter).expressions, asked.from + shift, asked.to + shift));
      if (!columns) return undefined;
      const got = lines(side ? columns.map((c) => ({ ...c, tags: {} })) : columns);
      if (metric.kind === 'counter') dropPartial(got, i, asked.to + shift);
      all.push(...(side ? moved(got, side) : got));
    }
    return all;
  }

  private heatMetric(): Metric | undefined {
    const named = this.metrics.find((m) => m.name === this.view.heat);
    return named ?? this.metrics.find((m) => m.name === 'cpu_percent') ?? this.overviewMetric();
  }

  private heatLines: Line[] = [];
  private heatAt = 0;

  private async loadHeat(): Promise<void> {
    const metric = this.heatMetric();
    // Two runs may have the same nodes: their rows cannot lie over each other.
    this.heat.element.hidden = this.nodes.length < 2 || this.sides !== null;
    if (!metric || this.heat.element.hidden || this.heatBusy) return;
    const range = this.range();
    const columnsMost = this.nodes.length > 200 ? 300 : 1200; // answers of 1,000 nodes stay below 3 MB
    const i = interval(range.to - range.from, Math.min(this.heat.pixels(), columnsMost));
    const expression = this.heatExpression(metric, i);
    const follows = this.situation().follows;
    const key = `${expression} ${follows ? this.view.last : toHash(this.view)}`;
    const fresh = key !== this.heatAsked;
    if (!fresh && (!follows || Date.now() - this.heatAt < HEAT_MS)) return;
    const last = newest(this.heatLines);
    const asked = aligned({ from: fresh || !Number.isFinite(last) ? range.from : last - again(i), to: range.to }, i);
    this.heatBusy = true;
    const columns = await this.loader.guarded(() => this.api.query([expression], asked.from, asked.to));
    this.heatBusy = false;
    if (!columns) return;
    this.heatAt = Date.now();
    this.heatAsked = key;
    const all = lines(columns.map((c) => ({ ...c, tags: { host: c.tags.host ?? '' } })));
    const got = metric.kind === 'counter' ? dropPartial(all, i, asked.to) : all;
    if (fresh) this.heatLines = got;
    else {
      for (const line of this.heatLines) forget(line, range.from - (range.to - range.from));
      mergeTail(this.heatLines, got, asked.from);
    }
    this.heat.metric = metric.name;
    this.heat.unit = metric.kind === 'counter' ? format.rateUnit(metric.unit) : metric.unit;
    this.heat.intervalMs = i;
    if (document.activeElement !== this.heat.picker) this.heat.picker.value = metric.name;
    this.heat.rows = sorted(rows(this.heatLines), this.view.heatSort);
    if (fresh) return;
    this.redraw();
  }

  private heatExpression(metric: Metric, i: number): string {
    const text = intervalText(i);
    const filter = braces(this.view.filter).replace('{}', '');
    const tags = `${metric.name}{host=*}${filter}`;
    return metric.kind === 'counter' ? `sum:${text}-last:rate{dropcounter}:${tags}` : `avg:${text}-avg:${tags}`;
  }

  private async loadSpans(): Promise<void> {
    const range = this.range();
    const follows = this.situation().follows;
    const sides = this.sides;
    const key = follows ? `${Date.now()}` : `${range.from} ${range.to} ${filterText(this.view.filter)} ${(sides ?? []).map((s) => s.job).join(' ')}`;
    if (key === this.spansAsked) return;
    this.spansAsked = key;
    const wanted: Span[] = [];
    for (const side of sides ?? [null]) {
      const shift = side?.shift ?? 0;
      const answer = await this.loader.guarded(() => this.api.spans(range.from + shift, range.to + shift, SPANS_MAX, side?.job ?? ''));
      if (!answer) return;
      for (const s of answer.spans)
        if (this.passesTags({ host: s.node, ...s.tags })) wanted.push(side ? { ...s, start_ns: s.start_ns - shift * 1e6, end_ns: s.end_ns && s.end_ns - shift * 1e6 } : s);
    }
    if (key !== this.spansAsked) return; // asked anew meanwhile
    const end = this.live ? this.api.clock.now() : this.whole().to;
    this.spans.element.hidden = !wanted.length;
    this.spans.setSpans(wanted, end, range);
  }

  // ---- drawing

  private setHover(t: number | null, chart?: Chart): void {
    this.hover = t;
    if (chart) this.showQuery(chart);
    this.sayAnnotation(t);
    this.redraw();
  }

  // The annotation under the cross-hair, in words.
  private sayAnnotation(t: number | null): void {
    const { from, to } = this.range();
    const near = (to - from) / 100;
    const note = t === null ? undefined : this.annotations.find((a) => Math.abs(a.t_ns / 1e6 - t) < near);
    say(this.note, note ? annotationText(note) : '');
  }

  private setBrush(range: Range | null): void {
    this.brush = range;
    this.redraw();
  }

  private showQuery(chart: Chart): void {
    if (!chart.plan) return;
    say(this.query, commands(chart, this.scene()).join('\n'));
  }

  private scene(): Scene {
    const status = this.status;
    const paths = status?.files.map((f) => f.path) ?? [];
    const folders = [...new Set(paths.map((p) => p.replace(/\/[^/]*$/, '')))];
    const job = status?.job || status?.runs[0]?.job || '';
    // Of a recording its path: a copy of it is found as well as the original.
    const target = this.live || !paths.length ? job : paths.length === 1 ? paths[0]! : folders.length === 1 ? folders[0]! : job;
    const range = this.range();
    const from = this.sides ? this.sides.map((s) => s.job).join(' and ') : job;
    const title = [from, `${format.clock(range.from, 1000, true)} to ${format.clock(range.to, 1000, true)}`, filterText(this.view.filter)].filter(Boolean).join(' · ');
    return { range, filter: this.view.filter, sides: this.sides, target, title, theme: this.theme };
  }

  private export(): void {
    const seen = this.visible().filter((c) => !c.element.hidden && c.hasData());
    this.exporting.open(seen, seen.find((c) => c.element === document.activeElement) ?? null, this.scene());
  }

  redraw(): void {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.drawing = false;
    this.lastDrawn = performance.now();
    const shown: Shown = {
      range: this.range(),
      hover: this.hover,
      brush: this.brush,
      selection: this.selection?.range ?? null,
      annotations: this.annotations,
      findings: this.findings,
      start: this.whole().from,
      origin: this.sides ? this.sides[0]!.from : null,
      theme: this.theme,
      colourOf: (tags, index, all) => this.colourOf(tags, index, all),
    };
    this.header.update({
      status: this.status,
      nodes: this.nodes,
      live: this.live,
      now: this.api.clock.now(),
      dropped: this.dropped,
      pointsPerSecond: this.pointsPerSecond,
    });
    this.showControls();
    let again = false;
    for (const chart of this.charts.values()) if (chart.visible && chart.element.isConnected) again = chart.draw(shown) || again;
    this.overview.whole = this.whole();
    this.overview.draw(shown);
    this.heat.draw(shown);
    this.spans.draw(shown);
    if (again) this.redraw();
    else if (this.situation().follows) this.scrollOn(shown.range);
  }

  // Lines scroll by time: the next frame is due when they have moved half a pixel, at most 30 times a second.
  private scrollOn(range: Range): void {
    const perPixel = (range.to - range.from) / 1200;
    const wait = Math.max(33, Math.min(1000, perPixel / 2)) - (performance.now() - this.lastDrawn);
    setTimeout(() => this.redraw(), Math.max(0, wait));
  }

  // The same host has the same colour everywhere, as long as a chart has one line a host.
  private colourOf(tags: Record<string, string>, index: number, all: Line[]): number {
    const hosts = new Set(all.map((l) => l.tags.host));
    if (hosts.size < 2 || hosts.size < all.length) return index;
    const at = this.nodes.findIndex((n) => n.host === tags.host);
    return at < 0 ? index : at;
  }

  private showControls(): void {
    const follows = this.live && !this.view.range;
    say(this.pause, this.live ? (follows ? 'pause' : 'live') : 'whole run');
    this.pause.disabled = !this.live && !this.view.range;
    this.lasts.value = this.view.range ? 'chosen' : String(this.view.last);
    if (!this.view.range && !LASTS.some(([s]) => s === this.view.last)) this.lasts.value = '0';
    document.documentElement.dataset.paused = String(this.pausedAt !== null);
  }

  private showConnection(): void {
    const c = this.loader.connection;
    this.banner.hidden = c.state === 'ok';
    if (c.state === 'lost') {
      const wait = Math.max(0, Math.ceil((c.retryAt - Date.now()) / 1000));
      const job = this.status?.runs[0]?.job ?? this.status?.job ?? '';
      say(
        this.banner,
        `The server has not answered since ${format.clock(c.since)}; next try ${wait ? `in ${wait} s` : 'now'}. ` +
          (job ? `If the job has ended: sonde open ${job}` : ''),
      );
    } else if (c.state === 'unauthorized')
      say(this.banner, 'This browser’s session has ended. Open the address with its token again; sonde status prints it.');
    document.documentElement.dataset.connection = c.state;
  }

  private toggleTheme(): void {
    toggle();
    this.themeChanged();
  }

  private themeChanged(): void {
    this.theme = readTheme();
    this.redraw();
  }

  private async copy(text: string, said: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      say(this.note, said);
    } catch {
      say(this.note, text); // not allowed, as over plain HTTP: to be copied by hand
    }
    setTimeout(() => say(this.note, ''), 6000);
  }

  // ---- the keyboard

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey || this.help.open || this.exporting.element.open) return;
    const target = e.target as HTMLElement;
    const typing = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (e.key === 'Escape') {
      if (target === this.search && this.search.value) {
        this.search.value = '';
        this.set({ search: '' });
      } else if (typing) target.blur();
      else if (this.view.filter && Object.keys(this.view.filter).length) this.setFilter({});
      return;
    }
    if (typing || (e.key === ' ' && target instanceof HTMLButtonElement)) return;
    const actions: Record<string, () => void> = {
      '/': () => this.search.focus(),
      j: () => this.focusChart(1),
      k: () => this.focusChart(-1),
      h: () => this.zoom(panned(this.range(), -0.25, this.whole())),
      l: () => this.zoom(panned(this.range(), 0.25, this.whole())),
      '+': () => this.zoom(zoomed(this.range(), 0.5, this.centre(), this.whole())),
      '=': () => this.zoom(zoomed(this.range(), 0.5, this.centre(), this.whole())),
      '-': () => this.zoom(zoomed(this.range(), 2, this.centre(), this.whole())),
      '0': () => {
        this.zoom(null);
        this.set({ last: 0 });
      },
      ' ': () => this.togglePause(),
      n: () => this.nextMark(1),
      p: () => this.nextMark(-1),
      g: () => this.goTo(this.heat.element, this.heat.canvas),
      s: () => this.goTo(this.spans.element, this.spans.canvas),
      c: () => this.compare.press(),
      e: () => this.export(),
      t: () => this.toggleTheme(),
      '?': () => this.help.showModal(),
    };
    const action = actions[e.key];
    if (!action) return;
    e.preventDefault();
    action();
  }

  private centre(): number {
    const range = this.range();
    if (this.hover === null) return 0.5;
    return Math.min(1, Math.max(0, (this.hover - range.from) / (range.to - range.from)));
  }

  private focusChart(by: number): void {
    const all = [...this.groupsElement.querySelectorAll<HTMLElement>('figure:not([hidden])')];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    next?.focus();
    next?.scrollIntoView({ block: 'nearest' });
  }

  private goTo(section: HTMLElement, canvas: HTMLElement): void {
    if (section.hidden) return;
    section.scrollIntoView({ block: 'start' });
    canvas.focus({ preventScroll: true });
  }

  // To the next finding or annotation on that side of the cross-hair.
  private nextMark(by: number): void {
    const range = this.range();
    const centre = this.hover ?? (range.from + range.to) / 2;
    const marks = [
      ...this.annotations.map((a) => ({ t: a.t_ns / 1e6, text: annotationText(a) })),
      ...this.findings.map((f) => ({ t: f.from, text: f.text })),
    ].sort((a, b) => (a.t - b.t) * by);
    const next = marks.find((m) => (m.t - centre) * by > 0.001);
    if (!next) return;
    const half = (range.to - range.from) / 2;
    if (next.t < range.from || next.t > range.to) this.zoom({ from: next.t - half, to: next.t + half });
    this.hover = next.t;
    say(this.note, next.text);
    this.redraw();
  }

  // What tests read: the numbers that are drawn, not the pixels.
  drawn() {
    return {
      live: this.live,
      connection: this.loader.connection.state,
      requests: this.api.requests,
      range: this.range(),
      charts: [...this.charts.values()]
        .filter((c) => c.element.isConnected && !c.element.hidden && c.visible)
        .map((c) => ({
          metric: c.metric.name,
          mode: c.mode,
          intervalMs: c.intervalMs,
          expressions: c.plan?.expressions ?? [],
          asked: c.asked,
          lines: c.lines,
        })),
      heat: { metric: this.heat.metric, rows: this.heat.rows },
      overview: this.overview.lines,
      lanes: this.spans.all,
      annotations: this.annotations,
      findings: this.findings,
      sides: this.sides,
    };
  }
}

function annotationText(note: Annotation): string {
  const tags = Object.entries(note.tags).map(([k, v]) => `${k}=${v}`);
  return [format.clock(note.t_ns / 1e6), note.text, ...tags].join('  ');
}

declare global {
  interface Window {
    sonde: Page;
  }
}

applyStored();
window.sonde = new Page();
window.sonde.start();
