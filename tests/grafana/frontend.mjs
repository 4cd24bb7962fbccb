// Grafana's frontend for the tests. Grafana's own packages (@grafana/scenes, runtime, data) choose
// the values of variables, interpolate the queries, query the data source, and name lines.
//
// This file replaces Grafana's application: it sends requests, provides the data source, converts a
// dashboard's JSON to a scene, and a response to a panel's data.
import {
  applyFieldOverrides,
  createTheme,
  displayNameOverrideProcessor,
  getFieldDisplayName,
  identityOverrideProcessor,
  LoadingState,
  numberOverrideProcessor,
  standardEditorsRegistry,
  standardFieldConfigEditorRegistry,
  toDataFrame,
  unitOverrideProcessor,
} from '@grafana/data';
import { setBackendSrv, setDataSourceSrv, setRunRequest, setTemplateSrv } from '@grafana/runtime';
import {
  dataLayers,
  EmbeddedScene,
  LocalValueVariable,
  QueryVariable,
  SceneControlsSpacer,
  sceneGraph,
  SceneDataLayerSet,
  SceneFlexItem,
  SceneFlexLayout,
  SceneQueryRunner,
  SceneTimeRange,
  SceneVariableSet,
  VizPanel,
} from '@grafana/scenes';
import { catchError, defaultIfEmpty, from, map, of, switchMap } from 'rxjs';

export const SETTINGS = {
  id: 1,
  uid: 'sonde',
  type: 'opentsdb',
  name: 'sonde',
  access: 'proxy',
  url: '/api/datasources/proxy/uid/sonde',
  readOnly: false,
  jsonData: { tsdbVersion: 4, tsdbResolution: 1 },
  meta: { id: 'opentsdb', name: 'OpenTSDB', type: 'datasource', info: {}, module: '', baseUrl: '' },
};

/** The options of fields in all panels, and Grafana's functions that read them. */
const FIELD_OPTIONS = {
  displayName: displayNameOverrideProcessor,
  unit: unitOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  decimals: numberOverrideProcessor,
  noValue: identityOverrideProcessor,
  color: identityOverrideProcessor,
  thresholds: identityOverrideProcessor,
  mappings: identityOverrideProcessor,
  links: identityOverrideProcessor,
};

/**
 * Provides what the packages need from Grafana's application.
 * Set `base` of the returned object to the address of /api/ds/query before you look at a dashboard.
 */
export function install(settings, DataSource) {
  const to = { base: undefined };
  standardEditorsRegistry.setInit(() =>
    ['number', 'boolean'].map((id) => ({ id, name: id, editor: () => null })),
  );
  standardFieldConfigEditorRegistry.setInit(() =>
    Object.entries(FIELD_OPTIONS).map(([path, process]) => ({
      id: path,
      path,
      name: path,
      process,
      shouldApply: () => true,
      editor: () => null,
      override: () => null,
      settings: { expandTemplateVars: path === 'displayName' },
    })),
  );
  const send = async (options) => {
    const address = new URL(options.url, to.base);
    for (const [key, value] of Object.entries(options.params ?? {})) {
      address.searchParams.set(key, value);
    }
    const answer = await fetch(address, {
      method: options.method ?? 'GET',
      body: options.data && JSON.stringify(options.data),
      headers: { 'Content-Type': 'application/json' },
    });
    const text = await answer.text();
    let data = text;
    try {
      data = JSON.parse(text);
    } catch {
      // The text of an error may not be JSON; it is returned as text.
    }
    if (!answer.ok) {
      throw { status: answer.status, statusText: answer.statusText, data, config: options };
    }
    return {
      status: answer.status,
      statusText: answer.statusText,
      ok: true,
      data,
      headers: answer.headers,
      config: options,
    };
  };
  setBackendSrv({
    fetch: (options) => from(send(options)),
    get: (url, params) => send({ url, params }).then((answer) => answer.data),
  });
  setTemplateSrv({
    replace: (text, scopedVars, format) => {
      const at = scopedVars?.__sceneObject?.value.valueOf() ?? window.__grafanaSceneContext;
      return at ? sceneGraph.interpolate(at, text, scopedVars, format) : text;
    },
    containsTemplate: (text) => /\$/.test(text ?? ''),
    getVariables: () => [],
    updateTimeRange: () => {},
  });
  const source = new DataSource(settings);
  setDataSourceSrv({
    get: async () => source,
    getInstanceSettings: () => settings,
    getList: () => [settings],
    reload: () => {},
  });
  setRunRequest((ds, request) =>
    from(Promise.resolve()).pipe(
      switchMap(() => ds.query(request)),
      defaultIfEmpty({ data: [] }), // without a query, the data source returns nothing
      map((answer) => ({
        state: answer.error || answer.errors?.length ? LoadingState.Error : LoadingState.Done,
        series: answer.data.map((frame) => toDataFrame(frame)),
        annotations: [],
        errors: answer.errors ?? (answer.error ? [answer.error] : undefined),
        request,
        timeRange: request.range,
      })),
      catchError((error) =>
        of({
          state: LoadingState.Error,
          series: [],
          annotations: [],
          errors: [{ message: String(error?.data?.message ?? error?.message ?? error) }],
          request,
          timeRange: request.range,
        }),
      ),
    ),
  );
  return to;
}

function variable(model) {
  const all = model.current?.value === '$__all';
  return new QueryVariable({
    name: model.name,
    label: model.label,
    datasource: model.datasource,
    query: model.query,
    refresh: model.refresh,
    sort: model.sort,
    regex: model.regex ?? '',
    includeAll: model.includeAll ?? false,
    allValue: model.allValue ?? undefined,
    isMulti: model.multi ?? false,
    value: all ? ['$__all'] : (model.current?.value ?? ''),
    text: all ? ['All'] : (model.current?.text ?? ''),
  });
}

function panel(model) {
  const runner = new SceneQueryRunner({
    datasource: model.datasource,
    queries: model.targets,
    minInterval: model.interval,
    maxDataPoints: model.maxDataPoints,
    maxDataPointsFromWidth: true,
  });
  return new VizPanel({
    key: `panel-${model.id}`,
    title: model.title,
    description: model.description,
    pluginId: model.type,
    fieldConfig: model.fieldConfig,
    options: model.options,
    $data: runner,
  });
}

/** Makes a scene of a dashboard's JSON and a range. `chosen` replaces values of variables. */
export function scene(model, range, chosen = {}, extra = {}) {
  const time = new SceneTimeRange({ from: range.from, to: range.to, timeZone: 'utc' });
  const variables = new SceneVariableSet({
    variables: model.templating.list.map((v) => {
      const made = variable(v);
      if (v.name in chosen) {
        made.setState({ value: chosen[v.name], text: chosen[v.name] });
      }
      return made;
    }),
  });
  // Grafana 13 needs the target of an annotation as an object for the data source; it drops a text.
  const layers = model.annotations.list.map(
    (note) =>
      new dataLayers.AnnotationsDataLayer({
        name: note.name,
        isEnabled: note.enable,
        isHidden: false,
        query: { ...note, target: typeof note.target === 'object' ? note.target : undefined },
      }),
  );
  const panels = model.panels
    .filter((p) => p.type !== 'row')
    .flatMap((p) => {
      const repeated = p.repeat && (chosen[p.repeat] ?? []);
      if (!repeated?.length) {
        return [panel(p)];
      }
      return repeated.map((value) => {
        const one = panel(p);
        one.setState({
          key: `panel-${p.id}-${value}`,
          $variables: new SceneVariableSet({
            variables: [new LocalValueVariable({ name: p.repeat, value, text: value })],
          }),
        });
        return one;
      });
    });
  const whole = new EmbeddedScene({
    $timeRange: time,
    $variables: variables,
    $data: new SceneDataLayerSet({ layers }),
    controls: [new SceneControlsSpacer()],
    body: new SceneFlexLayout({
      direction: 'row',
      wrap: 'wrap',
      children: panels.map((body) => new SceneFlexItem({ body, ...extra })),
    }),
  });
  window.__grafanaSceneContext = whole;
  return { whole, panels, layers, variables: variables.state.variables };
}

const ready = (object, is) =>
  new Promise((resolve) => {
    if (is(object.state)) {
      resolve(object.state);
      return;
    }
    const subscription = object.subscribeToState((state) => {
      if (is(state)) {
        subscription.unsubscribe();
        resolve(state);
      }
    });
  });

/**
 * Returns the state, errors and lines of each panel at a width in pixels, the annotations, and the
 * choices of variables.
 */
export async function look(model, range, width, chosen) {
  const { whole, panels, layers, variables } = scene(model, range, chosen);
  const leave = [whole.activate()];
  const theme = createTheme();
  const found = { variables: {}, panels: [], annotations: [] };
  try {
    for (const v of variables) {
      const state = await ready(
        v,
        (s) => !s.loading && !sceneGraph.hasVariableDependencyInLoadingState(whole),
      );
      found.variables[v.state.name] = {
        value: state.value,
        options: (state.options ?? []).map((o) => o.value),
        error: state.error && String(state.error?.message ?? state.error),
      };
    }
    for (const layer of layers) {
      const events = new Promise((resolve) =>
        layer.getResultsStream().subscribe((result) => {
          if (result.data.state !== LoadingState.Loading) {
            resolve(result.data);
          }
        }),
      );
      const data = await events;
      for (const frame of [...(data.annotations ?? []), ...(data.series ?? [])]) {
        const field = (name) => frame.fields.find((f) => f.name === name)?.values ?? [];
        field('time').forEach((time, i) =>
          found.annotations.push({ time, text: field('text')[i] }),
        );
      }
    }
    await Promise.all(
      panels.map(async (p) => {
        const runner = p.state.$data;
        if (p.state.$variables) {
          leave.push(p.state.$variables.activate());
        }
        leave.push(runner.activate());
        runner.setContainerWidth(width); // starts the query
        const { data } = await ready(
          runner,
          (s) => s.data?.request && s.data.state !== LoadingState.Loading,
        );
        const series = applyFieldOverrides({
          data: data.series,
          fieldConfig: p.state.fieldConfig,
          theme,
          timeZone: 'utc',
          replaceVariables: (text, scopedVars, format) =>
            sceneGraph.interpolate(p, text, scopedVars, format),
        });
        found.panels.push({
          key: p.state.key,
          title: sceneGraph.interpolate(p, p.state.title),
          state: data.state,
          errors: (data.errors ?? []).map((e) => e.message ?? e.data?.message ?? String(e)),
          interval: data.request?.interval,
          queries: data.request?.targets?.length,
          metric: p.state.$data.state.queries[0].metric,
          lines: series.flatMap((frame) =>
            frame.fields
              .filter((f) => f.type === 'number')
              .map((f) => ({
                name: getFieldDisplayName(f, frame, series),
                labels: f.labels ?? {},
                points: frame.fields[0].values.map((t, i) => [t, f.values[i]]),
              })),
          ),
        });
      }),
    );
  } finally {
    leave.reverse().forEach((f) => f());
  }
  found.panels.sort(
    (a, b) =>
      panels.findIndex((p) => p.state.key === a.key) -
      panels.findIndex((p) => p.state.key === b.key),
  );
  return found;
}
