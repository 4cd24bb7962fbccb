// The page: its parts, the view, the requests for the job's state every two seconds, and the
// drawing.

import { Actions } from './actions';
import { Chart, Shown } from './chart';
import { ChartGroups } from './chart_groups';
import { CompareBar, runsOf, Side, sidesOf, wholeOf } from './compare';
import { Controls } from './controls';
import { goTo, h, say } from './dom';
import { EventsData, passes } from './events_data';
import { commands, ExportDialog, Scene } from './export';
import { Finding, FindingStrip } from './findings';
import { FindingsData } from './findings_data';
import * as format from './format';
import { Frames, Part } from './frames';
import { Header } from './header';
import { HeatMap } from './heatmap';
import { HeatMapData } from './heatmap_data';
import { connectedNodes, Job } from './job';
import { KeyList, onKeys } from './keyboard';
import type { Line } from './lines';
import { Loader, Situation } from './loader';
import { annotationAt, nextMark, restartOf } from './marks';
import { MetricsData } from './metrics_data';
import { EMPTY, filterText, fromHash, panned, Range, toHash, View, zoomed } from './model';
import { OutliersData } from './outliers';
import { Overview } from './overview';
import { OverviewData } from './overview_data';
import type { Metric, Node, Source, Status } from './source';
import { Placed, Spans } from './spans';
import { ConnectionBanner, NoPoint } from './states';
import { readTheme, toggle } from './theme';

const LIVE_MS = 2000; // between two requests for the job's state: status, annotations, spans
const IDLE_MS = 10000; // between two checks that the server of a recording still runs
const RECENT_S = 900; // the initial range of a long running job
const SAID_MS = 6000; // time for which a note is shown

export class Page {
  private readonly loader: Loader;
  private readonly job = new Job();
  private view: View = fromHash(location.hash);
  private sides: Side[] | null = null;
  private hover: number | null = null;
  private brush: Range | null = null;
  private selection: { range: Range; label: string } | null = null;
  private pausedAt: number | null = null;
  private theme = readTheme();

  // ---- elements

  private readonly exporting = new ExportDialog((text) => void this.copy(text, 'copied'));
  private readonly keys = new KeyList();
  private readonly compare = new CompareBar((runs) => this.chooseRuns(runs));
  private readonly strip = new FindingStrip((f) => this.goToFinding(f));
  private readonly controls = new Controls({
    search: (search) => this.set({ search }),
    filter: (tags) => this.set({ filter: tags }),
    last: (last) => {
      this.selection = null;
      this.pausedAt = null;
      this.set({ range: null, last });
    },
    pause: () => this.togglePause(),
    share: () => void this.copy(location.href, 'the link is copied; it needs a session of this job'),
    export: () => this.export(),
    annotate: () => this.annotate(),
    restart: () => this.actions.restart(this.job, this.view.filter.host),
    theme: () => this.toggleTheme(),
    keys: () => this.keys.element.showModal(),
  });
  private readonly header = new Header(this.controls.element);
  private readonly banner = new ConnectionBanner();
  private readonly overview = new Overview((range) => this.zoom(range));
  private readonly heat = new HeatMap({
    hover: (t) => this.setHover(t),
    zoom: (r) => this.zoom(r),
    brush: (r) => this.setBrush(r),
    node: (host) => this.setFilter({ ...this.view.filter, host }),
    metric: (name) => this.set({ heat: name }),
    sort: (heatSort) => this.set({ heatSort }),
    hide: () => this.set({ heatHidden: !this.view.heatHidden }),
    groups: () => this.set({ heatGroups: this.view.heatGroups ? null : [] }),
    group: (name) => this.toggleGroup(name),
  });
  private readonly charts = new ChartGroups({
    hover: (c, t) => this.setHover(t, c),
    brush: (r) => this.setBrush(r),
    zoom: (r) => this.zoom(r),
    toggle: (c) => this.toggleLines(c),
    seen: () => {
      void this.load();
      this.redraw();
    },
    focus: (c) => this.showQuery(c),
    arrow: (c, step) => this.moveHover(c, step),
  });
  private readonly spans = new Spans({
    hover: (t) => this.setHover(t),
    brush: (r) => this.setBrush(r),
    zoom: (r) => this.zoom(r),
    span: (p) => this.selectSpan(p),
  });
  private readonly noPoint = new NoPoint();
  private readonly metricNames = h('datalist', { id: 'metrics' });
  private readonly query = h('code', { class: 'query', tabindex: '0' });
  private readonly about = h('span', { class: 'version' });
  private readonly note = h('span', { role: 'status', class: 'note' });

  private readonly frames = new Frames<Shown>(
    () => this.parts(),
    () => this.beginFrame(),
  );

  // ---- data

  private readonly metricsData: MetricsData;
  private readonly overviewData: OverviewData;
  private readonly heatData: HeatMapData;
  private readonly outliersData: OutliersData;
  private readonly findings: FindingsData;
  private readonly actions: Actions;
  private readonly events: EventsData;

  constructor(private readonly source: Source) {
    this.loader = new Loader(
      source,
      () => this.situation(),
      (chart) => (chart ? this.frames.mark(chart) : this.showConnection()),
    );
    this.metricsData = new MetricsData(source, this.loader);
    this.overviewData = new OverviewData(source, this.loader, this.overview);
    this.heatData = new HeatMapData(source, this.loader, this.heat);
    this.outliersData = new OutliersData(source, this.loader, (chart) => this.frames.mark(chart));
    this.findings = new FindingsData(source, this.loader, this.strip);
    this.events = new EventsData(source, this.loader);
    this.actions = new Actions(source, (title) => void this.tick().then(() => this.tell(`${title}: done`)));
  }

  start(): void {
    document.body.append(
      this.header.element,
      this.banner.element,
      h('main', {}, this.strip.element, this.compare.element, this.overview.element, this.noPoint.element, this.heat.element, this.charts.element, this.spans.element),
      h(
        'footer',
        {},
        this.about,
        h('span', { class: 'line' }, this.query, h('button', { type: 'button', click: () => void this.copy(this.query.textContent ?? '', 'copied') }, 'copy')),
        this.note,
      ),
      this.metricNames,
      this.controls.tagNames,
      this.keys.element,
      this.exporting.element,
      ...this.actions.elements,
    );
    this.controls.fill(this.view);
    this.heat.order.value = this.view.heatSort;
    this.heat.element.hidden = this.spans.element.hidden = true;
    this.takeKeys();
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
    for (;;) {
      await this.tick().catch(reportError); // after an unexpected error, the page goes on
      const pause = this.loader.connection.state === 'lost' ? 250 : this.job.live || !this.job.nodes.length ? LIVE_MS : IDLE_MS;
      await new Promise((go) => setTimeout(go, pause));
    }
  }

  // ---- state

  private async tick(): Promise<void> {
    const { job, source, loader } = this;
    if (document.hidden && job.status) return;
    if (loader.open()) {
      if (source.regained()) this.stale();
      const [status, metrics] = await Promise.all([loader.guarded(() => source.status()), this.metricsData.request(job)]);
      // With many nodes, most requests cost one message per node, so the first charts come first.
      const early = status && metrics?.partial && !job.status && !this.view.runs.length;
      if (early) {
        await this.showJob(status, connectedNodes(status), metrics.metrics);
        await loader.onScreen;
      }
      const nodes = await loader.guarded(() => source.nodes());
      if (status && nodes && metrics) {
        if (early) this.takeStatus(status, nodes.nodes);
        else await this.showJob(status, nodes.nodes, metrics.metrics);
        await Promise.all([this.events.loadAnnotations(this.situation()), this.takeDropped(), this.loadSpans(), metrics.partial && this.takeAllMetrics()]);
        await loader.poll(this.charts.wanted());
        await loader.guarded(() => this.actions.load(job.live));
      }
    }
    this.showConnection();
  }

  private showConnection(): void {
    this.banner.update(this.loader.connection, this.job.name());
    this.redraw();
  }

  private async showJob(status: Status, nodes: Node[], metrics: Metric[]): Promise<void> {
    this.takeStatus(status, nodes);
    const changed = this.job.takeMetrics(metrics);
    // These requests are on their way while the charts are laid out.
    const first = [this.overviewData.load(this.job, this.situation()), this.loadHeat()];
    await null; // sends them
    if (changed) this.layOut();
    await Promise.all([...first, this.load()]);
  }

  private takeStatus(status: Status, nodes: Node[]): void {
    const first = !this.job.status;
    this.job.takeStatus(status, nodes, this.source.now());
    if (first) this.chooseRange();
    say(this.about, this.job.about());
    document.documentElement.dataset.live = String(this.job.live);
    this.updateSides();
  }

  // The end of a long running job, unless the address names a range.
  private chooseRange(): void {
    const { from, to } = this.whole();
    if (this.job.live && !location.hash && to - from > RECENT_S * 1000 * 1.5) this.setView({ last: RECENT_S });
  }

  private layOut(): void {
    this.metricNames.replaceChildren(...this.job.metrics.map((m) => h('option', { value: m.name })));
    this.charts.layOut(this.job.metrics, this.view.search);
  }

  private async takeAllMetrics(): Promise<void> {
    if (this.job.takeMetrics((await this.metricsData.all())?.metrics ?? this.job.metrics)) this.layOut();
    await Promise.all([this.loadHeat(), this.load()]);
  }

  private async takeDropped(): Promise<void> {
    if (!this.job.has('sonde_dropped_total')) return;
    const answer = await this.loader.guarded(() => this.source.series('sonde_dropped_total', 1000));
    if (answer) this.job.dropped = answer.series.reduce((sum, s) => sum + (s.value ?? 0), 0);
  }

  private async load(): Promise<void> {
    if (!this.job.status || !this.loader.open()) return;
    await this.loader.load(this.charts.wanted(), this.charts.onScreen());
    void this.loadDetails();
    this.controls.suggest(this.job, (all, most) => this.charts.addTags(all, most));
    this.overview.element.hidden = this.noPoint.update(this.job, this.charts.hideEmpty());
    this.redraw();
  }

  private async loadDetails(): Promise<void> {
    await this.loadFindings();
    await this.outliersData.load(this.charts.onScreen(), this.situation());
  }

  private async loadFindings(): Promise<void> {
    // Findings cost the server most, so they wait for the first charts, unless there are no
    // metrics.
    const waiting = !this.charts.observed || this.charts.wanted().some((c) => !c.asked && !c.failed);
    if (!waiting || !this.job.metrics.length) await this.findings.load(this.job);
    this.showFindings();
  }

  private showFindings(): void {
    this.findings.show(this.job, this.whole(), this.sides, (tags) => passes(this.view.filter, tags));
    this.redraw();
  }

  private async loadSpans(): Promise<void> {
    const spans = await this.events.loadSpans(this.situation());
    if (!spans) return;
    this.spans.element.hidden = !spans.length;
    this.spans.setSpans(spans, this.job.live ? this.source.now() : this.whole().to, this.range());
  }

  private async loadHeat(): Promise<void> {
    if (await this.heatData.load(this.job, this.situation(), this.view)) this.redraw();
  }

  // Everything is loaded again; the old data stay until then.
  private stale(): void {
    this.loader.stale();
    this.overviewData.stale();
    this.heatData.stale();
    this.events.stale();
  }

  private async reload(): Promise<void> {
    if (!this.job.status || !this.loader.open()) return;
    await Promise.all([this.load(), this.loadSpans(), this.loadHeat()]);
    this.redraw();
  }

  // ---- comparison

  private updateSides(): void {
    const runs = runsOf(this.job.nodes, this.job.status);
    const sides = sidesOf(this.view.runs, runs);
    const key = (all: Side[] | null) => (all ?? []).map((s) => `${s.job} ${s.shift}`).join();
    if (key(sides) !== key(this.sides)) this.stale();
    this.sides = sides;
    this.compare.update(runs, sides);
  }

  private chooseRuns(runs: string[]): void {
    this.selection = null;
    this.set({ runs, range: null, last: 0 });
    void this.tick();
  }

  // ---- the view

  private whole(): Range {
    return this.sides ? wholeOf(this.sides) : this.job.whole(this.now());
  }

  private askedAt: number | null = null;

  // The same time for all questions that are asked at once, so that they become one request
  // (batch.ts).
  private now(): number {
    if (this.askedAt === null) queueMicrotask(() => (this.askedAt = null));
    return (this.askedAt ??= this.source.now());
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
      follows: this.job.live && !this.view.range,
      nodes: this.job.nodes.length,
      seriesEach: this.job.seriesEach(),
      sides: this.sides,
    };
  }

  private setView(change: Partial<View>): void {
    this.view = { ...this.view, ...change };
    const hash = toHash(this.view);
    if (hash !== location.hash) history.replaceState(null, '', location.pathname + location.search + hash);
  }

  private set(change: Partial<View>): void {
    this.setView(change);
    this.viewChanged('search' in change || 'filter' in change);
  }

  private readAddress(): void {
    this.view = { ...EMPTY, ...fromHash(location.hash) };
    this.controls.fill(this.view);
    this.viewChanged(true);
  }

  private viewChanged(layOut: boolean): void {
    this.updateSides();
    this.showFindings();
    if (layOut) this.charts.layOut(this.job.metrics, this.view.search);
    this.showControls();
    void this.reload();
    this.redraw();
  }

  private zoom(range: Range | null): void {
    this.brush = null;
    this.selection = null;
    this.pausedAt = null;
    this.set({ range });
  }

  private setFilter(filter: Record<string, string>): void {
    this.set({ filter });
    this.controls.fill(this.view);
  }

  private togglePause(): void {
    if (this.view.range) this.zoom(null);
    else {
      this.pausedAt = Date.now();
      this.set({ range: this.range() });
    }
  }

  private selectSpan(p: Placed): void {
    const margin = Math.max(0.01, (p.to - p.from) * 0.05);
    this.selection = { range: { from: p.from, to: p.to }, label: p.span.name };
    this.brush = null;
    this.set({ range: { from: p.from - margin, to: p.to + margin } });
  }

  // Goes to the chart and the time of a finding, with a third of the range on each side.
  private goToFinding(f: Finding): void {
    const whole = this.whole();
    const margin = Math.max(5000, (f.to - f.from) / 3);
    this.selection = { range: { from: f.from, to: f.to }, label: f.text };
    this.brush = null;
    this.pausedAt = null;
    this.set({ range: { from: Math.max(whole.from, f.from - margin), to: Math.min(whole.to, f.to + margin) }, search: '' });
    this.controls.fill(this.view);
    const chart = f.metric === undefined ? undefined : this.charts.find(f.metric);
    if (chart?.element.isConnected) goTo(chart.element, chart.element);
    else if (f.span !== undefined) goTo(this.spans.element, this.spans.canvas);
    else goTo(this.heat.element, this.heat.canvas);
  }

  private toggleGroup(name: string): void {
    const open = this.view.heatGroups ?? [];
    this.set({ heatGroups: open.includes(name) ? open.filter((other) => other !== name) : [...open, name] });
  }

  private toggleLines(chart: Chart): void {
    if (chart.sourceSeries <= 8) return;
    chart.allLines = !chart.allLines;
    chart.asked = null;
    void this.load();
  }

  // ---- drawing

  private setHover(t: number | null, chart?: Chart): void {
    this.hover = t;
    if (chart) this.showQuery(chart);
    const { from, to } = this.range();
    say(this.note, t === null ? '' : annotationAt(this.events.annotations, t, (to - from) / 100));
    this.redraw();
  }

  // Moves by a hundredth of the range.
  private moveHover(chart: Chart, step: number): void {
    const { from, to } = this.range();
    const by = (step * (to - from)) / 100;
    this.setHover(Math.min(to, Math.max(from, (this.hover ?? (step > 0 ? from - by : to - by)) + by)), chart);
  }

  private setBrush(range: Range | null): void {
    this.brush = range;
    this.redraw();
  }

  private showQuery(chart: Chart): void {
    if (chart.plan) say(this.query, commands(chart, this.scene()).join('\n'));
  }

  private scene(): Scene {
    const range = this.range();
    const from = this.sides ? this.sides.map((s) => s.job).join(' and ') : this.job.name();
    const { filter } = this.view;
    const title = [from, `${format.clock(range.from, 1000, true)} to ${format.clock(range.to, 1000, true)}`, filterText(filter)].filter(Boolean).join(' · ');
    return { range, filter, sides: this.sides, target: this.job.target(), title, theme: this.theme };
  }

  private export(): void {
    const seen = this.charts.wanted().filter((c) => !c.element.hidden && c.hasData());
    if (!seen.length) {
      say(this.note, 'there is no visible chart to export');
      return;
    }
    this.exporting.open(seen, seen.find((c) => c.element === document.activeElement) ?? null, this.scene());
  }

  // At the cross-hair, or at the start of the selected range, or now.
  private annotate(): void {
    this.actions.annotate(this.job, this.hover ?? this.selection?.range.from ?? this.range().to, this.view.filter);
  }

  private redraw(): void {
    this.frames.mark();
  }

  private parts(): Part<Shown>[] {
    return [this.overview, this.heat, this.spans, ...this.charts.inSight()];
  }

  private beginFrame(): { shown: Shown; range: Range; follows: boolean } {
    const range = this.range();
    this.header.update(this.job, this.source.now(), this.sides ? 0 : Math.max(0, ...this.events.annotations.map(restartOf)));
    this.showControls();
    this.overview.whole = this.whole();
    const shown = {
      range,
      hover: this.hover,
      brush: this.brush,
      selection: this.selection?.range ?? null,
      annotations: this.events.annotations,
      findings: this.findings.all,
      start: this.overview.whole.from,
      origin: this.sides ? this.sides[0]!.from : null,
      theme: this.theme,
      colourOf: (tags: Record<string, string>, index: number, all: Line[]) => this.job.colourOf(tags, index, all),
    };
    return { shown, range, follows: this.situation().follows };
  }

  private showControls(): void {
    this.controls.show(this.job.live, this.view);
    this.controls.offer(this.actions.offered(this.job));
    document.documentElement.dataset.paused = String(this.pausedAt !== null);
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
      this.tell(said);
    } catch {
      this.tell(text); // the browser refused, for example over plain HTTP: the user copies the text
    }
  }

  private tell(text: string): void {
    say(this.note, text);
    setTimeout(() => say(this.note, ''), SAID_MS);
  }

  // ---- the keyboard

  private takeKeys(): void {
    const pan = (share: number) => this.zoom(panned(this.range(), share, this.whole()));
    const zoom = (factor: number) => this.zoom(zoomed(this.range(), factor, this.centre(), this.whole()));
    const actions: Record<string, () => void> = {
      '/': () => this.controls.search.focus(),
      j: () => this.charts.focus(1),
      k: () => this.charts.focus(-1),
      h: () => pan(-0.25),
      l: () => pan(0.25),
      '+': () => zoom(0.5),
      '=': () => zoom(0.5),
      '-': () => zoom(2),
      '0': () => {
        this.zoom(null);
        this.set({ last: 0 });
      },
      ' ': () => this.togglePause(),
      n: () => this.goToMark(1),
      p: () => this.goToMark(-1),
      g: () => goTo(this.heat.element, this.heat.canvas),
      s: () => goTo(this.spans.element, this.spans.canvas),
      c: () => this.compare.press(),
      e: () => this.export(),
      a: () => this.annotate(),
      t: () => this.toggleTheme(),
      '?': () => this.keys.element.showModal(),
    };
    onKeys(actions, (field) => {
      if (field === this.controls.search && this.view.search) {
        this.set({ search: '' });
        this.controls.fill(this.view);
      } else if (field) field.blur();
      else if (Object.keys(this.view.filter).length) this.setFilter({});
    });
  }

  // The centre for zooming with keys: the cross-hair.
  private centre(): number {
    const range = this.range();
    return this.hover === null ? 0.5 : Math.min(1, Math.max(0, (this.hover - range.from) / (range.to - range.from)));
  }

  // Goes to the next finding or annotation on that side of the cross-hair.
  private goToMark(by: number): void {
    const range = this.range();
    const next = nextMark(this.events.annotations, this.findings.all, this.hover ?? (range.from + range.to) / 2, by);
    if (!next) return;
    const half = (range.to - range.from) / 2;
    if (next.t < range.from || next.t > range.to) this.zoom({ from: next.t - half, to: next.t + half });
    this.hover = next.t;
    say(this.note, next.text);
    this.redraw();
  }

  // For tests: the drawn numbers instead of the pixels.
  drawn() {
    return {
      live: this.job.live,
      connection: this.loader.connection.state,
      requests: this.source.requests,
      range: this.range(),
      charts: this.charts.drawn(),
      heat: { metric: this.heat.metric, rows: this.heat.rows },
      overview: this.overview.lines,
      lanes: this.spans.all,
      annotations: this.events.annotations,
      findings: this.findings.all,
      sides: this.sides,
    };
  }
}

declare global {
  interface Window {
    sonde: Page;
  }
}
