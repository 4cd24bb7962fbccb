// The modules that Grafana provides to a plugin, by their names.
import * as css from '@emotion/css';
import * as data from '@grafana/data';
import * as runtime from '@grafana/runtime';
import * as ui from '@grafana/ui';
import lodash from 'lodash';
import * as react from 'react';
import * as jsx from 'react/jsx-runtime';
import * as dom from 'react-dom';
import * as rxjs from 'rxjs';
import * as operators from 'rxjs/operators';

export const modules = {
  '@emotion/css': css,
  '@grafana/data': data,
  '@grafana/runtime': runtime,
  '@grafana/ui': ui,
  lodash,
  react,
  'react/jsx-runtime': jsx,
  'react-dom': dom,
  rxjs,
  'rxjs/operators': operators,
};
