// A stand-in for the browser's half of Grafana's OpenTSDB data source; its base class is Grafana's.
import { toDataFrame } from '@grafana/data';
import { DataSourceWithBackend, getTemplateSrv } from '@grafana/runtime';
import { map, merge, of } from 'rxjs';

const INTERPOLATED = [
  'aggregator',
  'downsampleInterval',
  'downsampleAggregator',
  'downsampleFillPolicy',
  'counterMax',
  'counterResetValue',
  'alias',
];
/** What a variable can ask for: how it is written, and the plugin's route and parameters. */
const LOOKUPS = [
  [/metrics\((.*)\)/, (limit, q) => ['api/suggest', { type: 'metrics', q, max: limit }]],
  [/tag_names\((.*)\)/, (_, metric) => ['api/search/lookup', { type: 'key', metric }]],
  [
    /tag_values\((.*?),\s?(.*)\)/,
    (_, metric, keys) => ['api/search/lookup', { type: 'keyvalue', metric, keys }],
  ],
  [/suggest_tagk\((.*)\)/, (limit, q) => ['api/suggest', { type: 'tagk', q, max: limit }]],
  [/suggest_tagv\((.*)\)/, (limit, q) => ['api/suggest', { type: 'tagv', q, max: limit }]],
];

export class DataSource extends DataSourceWithBackend {
  constructor(settings) {
    super(settings);
    this.lookupLimit = settings.jsonData.lookupLimit || 1000;
    this.annotations = {
      prepareAnnotation: (note) => {
        if (!note.target || typeof note.target === 'string') {
          note.target = {
            fromAnnotations: true,
            target: note.target ?? '',
            name: note.name ?? '',
            isGlobal: note.isGlobal ?? false,
          };
        }
        return note;
      },
    };
  }

  query(request) {
    if (request.targets.some((target) => target.fromAnnotations)) {
      return merge(
        ...request.targets
          .filter((target) => target.target)
          .map((note) => this.notes(request, note)),
      );
    }
    return request.targets.some((target) => target.metric && !target.hide)
      ? super.query(request)
      : of({ data: [] });
  }

  notes(request, note) {
    const target = {
      refId: note.refId ?? 'Anno',
      metric: note.target,
      aggregator: 'sum',
      fromAnnotations: true,
      isGlobal: note.isGlobal,
      disableDownsampling: true,
    };
    return super.query({ ...request, targets: [target] }).pipe(
      map((answer) => ({
        data: [
          toDataFrame(
            answer.data.flatMap((frame) =>
              (frame.meta?.custom?.[note.isGlobal ? 'globalAnnotations' : 'annotations'] ?? []).map(
                (a) => ({
                  text: a.description,
                  time: Math.floor(a.startTime) * 1000,
                  annotation: note,
                }),
              ),
            ),
          ),
        ],
      })),
    );
  }

  applyTemplateVariables(query, scopedVars) {
    const templates = getTemplateSrv();
    const made = structuredClone({ ...query, aggregator: query.aggregator || 'avg' });
    made.metric = templates.replace(made.metric, scopedVars, 'pipe');
    for (const name of INTERPOLATED.filter((name) => made[name])) {
      made[name] = templates.replace(made[name], scopedVars);
    }
    if (made.filters?.length) {
      made.filters = made.filters.map((f) => ({
        ...f,
        tagk: templates.replace(f.tagk, scopedVars, 'pipe'),
        filter: templates.replace(f.filter, scopedVars, 'pipe'),
      }));
    } else if (made.tags) {
      made.tags = Object.fromEntries(
        Object.entries(made.tags).map(([key, text]) => [
          key,
          templates.replace(text, scopedVars, 'pipe'),
        ]),
      );
    }
    return made;
  }

  async metricFindQuery(text) {
    const asked = getTemplateSrv().replace(text, {}, 'distributed');
    for (const [written, lookup] of LOOKUPS) {
      const words = asked?.match(written);
      if (words) {
        const [path, parameters] = lookup(this.lookupLimit, ...words.slice(1));
        const needed =
          path === 'api/suggest' ||
          (parameters.metric && (parameters.type === 'key' || parameters.keys));
        const found = needed ? await this.getResource(path, parameters) : [];
        return found.map((value) => ({ text: value }));
      }
    }
    return [];
  }
}
