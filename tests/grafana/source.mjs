// A stand-in for the frontend of Grafana's OpenTSDB data source, with Grafana's base class.
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
/** The lookups of variables: the plugin's route and parameters of each. */
const LOOKUPS = {
  metrics: (q) => ['api/suggest', { type: 'metrics', q }],
  suggest_tagk: (q) => ['api/suggest', { type: 'tagk', q }],
  suggest_tagv: (q) => ['api/suggest', { type: 'tagv', q }],
  tag_names: (metric) => ['api/search/lookup', { type: 'key', metric }],
  tag_values: (inside) => {
    const [metric, ...keys] = inside.split(',');
    return [
      'api/search/lookup',
      { type: 'keyvalue', metric, keys: keys.join().replace(/^\s/, '') },
    ];
  },
};
const WRITTEN = new RegExp(`(${Object.keys(LOOKUPS).join('|')})\\((.*)\\)`);

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
    const words = getTemplateSrv().replace(text, {}, 'distributed')?.match(WRITTEN);
    if (!words) {
      return [];
    }
    const [path, parameters] = LOOKUPS[words[1]](words[2]);
    if (path === 'api/suggest') {
      parameters.max = this.lookupLimit;
    } else if (!parameters.metric || parameters.keys === '') {
      return [];
    }
    return (await this.getResource(path, parameters)).map((value) => ({ text: value }));
  }
}
