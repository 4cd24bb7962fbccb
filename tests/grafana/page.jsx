// A page with a complete dashboard. @grafana/scenes lays out the panels, @grafana/ui draws them.
// Grafana's time series panel is a part of its application. Here, ui's chart and legend replace it,
// and the page draws the annotations over the chart.
import {
  createTheme,
  EventBusSrv,
  FieldColorModeId,
  PanelPlugin,
  ThemeContext,
} from '@grafana/data';
import { config as settings, setAppEvents, setPluginImportUtils } from '@grafana/runtime';
import { SceneGridItem, SceneGridLayout, VariableValueSelectors } from '@grafana/scenes';
import { GlobalStyles, PortalContainer, TimeSeries } from '@grafana/ui';
import { useLayoutEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { MemoryRouter } from 'react-router-dom';
import chartStyle from 'uplot/dist/uPlot.min.css';
import { install, scene, SETTINGS } from './frontend.mjs';
import { DataSource } from './source.mjs';

const CALM_FRAMES = 30;

function Notes({ builder, notes, color }) {
  useLayoutEffect(() => {
    builder.addHook('draw', (u) => {
      for (const time of notes) {
        const x = u.valToPos(time, 'x', true);
        const { top, height } = u.bbox;
        u.ctx.save();
        u.ctx.strokeStyle = u.ctx.fillStyle = color;
        u.ctx.setLineDash([5, 5]);
        u.ctx.beginPath();
        u.ctx.moveTo(x, top);
        u.ctx.lineTo(x, top + height);
        u.ctx.stroke();
        u.ctx.beginPath();
        u.ctx.moveTo(x - 5, top + height + 6);
        u.ctx.lineTo(x + 5, top + height + 6);
        u.ctx.lineTo(x, top + height);
        u.ctx.fill();
        u.ctx.restore();
      }
    });
  }, [builder, notes, color]);
  return null;
}

function Chart({ data, width, height, timeRange, timeZone, options }) {
  const notes = (data.annotations ?? []).flatMap(
    (frame) => frame.fields.find((f) => f.name === 'time')?.values ?? [],
  );
  if (!data.series.length) {
    return (
      <div
        className="empty"
        style={{ height, display: 'flex', alignItems: 'center', justifyContent: 'center' }}
      >
        No data
      </div>
    );
  }
  return (
    <TimeSeries
      key={notes.join()}
      frames={data.series}
      width={width}
      height={height}
      timeRange={timeRange}
      timeZone={timeZone}
      legend={options.legend}
    >
      {(builder) => (
        <Notes
          builder={builder}
          notes={notes}
          color={settings.theme2.visualization.getColorByName('blue')}
        />
      )}
    </TimeSeries>
  );
}

const asked = JSON.parse(document.getElementById('asked').textContent);
settings.theme2 = createTheme({ colors: { mode: asked.mode } });
setAppEvents(new EventBusSrv());
install(SETTINGS, DataSource).base = location.origin;
const plugin = new PanelPlugin(Chart)
  .useFieldConfig({
    standardOptions: {
      color: { defaultValue: { mode: FieldColorModeId.PaletteClassic }, settings: {} },
    },
    useCustomConfig: (builder) =>
      builder
        .addNumberInput({ path: 'lineWidth', name: 'lineWidth', defaultValue: 1 })
        .addNumberInput({ path: 'fillOpacity', name: 'fillOpacity', defaultValue: 0 })
        .addNumberInput({ path: 'axisSoftMax', name: 'axisSoftMax' })
        .addBooleanSwitch({ path: 'spanNulls', name: 'spanNulls', defaultValue: false }),
  })
  .setDataSupport({ annotations: true });
plugin.meta = {
  id: 'timeseries',
  name: 'Time series',
  type: 'panel',
  module: '',
  baseUrl: '',
  info: { version: '' },
};
setPluginImportUtils({
  getPanelPluginFromCache: () => plugin,
  importPanelPlugin: async () => plugin,
});
const { whole, panels } = scene(asked.dashboard, asked.range, asked.chosen);
const places = Object.fromEntries(asked.dashboard.panels.map((p) => [`panel-${p.id}`, p.gridPos]));
panels.forEach((p) => p.clearParent());
whole.setState({
  controls: [new VariableValueSelectors({})],
  body: new SceneGridLayout({
    children: panels.slice(0, asked.panels).map((body, i) => {
      const { x, y, w, h } = places[body.state.key] ?? { x: 0, y: 10 * i, w: 24, h: 10 };
      return new SceneGridItem({ x, y, width: w, height: h, body });
    }),
  }),
});
createRoot(document.getElementById('root')).render(
  <MemoryRouter>
    <ThemeContext.Provider value={settings.theme2}>
      <style>{chartStyle}</style>
      <GlobalStyles />
      <div style={{ padding: 8, background: settings.theme2.colors.background.canvas }}>
        <whole.Component model={whole} />
      </div>
      <PortalContainer />
    </ThemeContext.Provider>
  </MemoryRouter>,
);

// Chromium takes the picture when the page has loaded, and loading includes /wait. draw.py answers
// /wait after /drawn, which the page requests when all panels have been drawn for a few frames.
const count = Math.min(panels.length, asked.panels);
let calm = 0;
(function look() {
  calm = document.querySelectorAll('.uplot canvas, .empty').length >= count ? calm + 1 : 0;
  if (calm < CALM_FRAMES) {
    requestAnimationFrame(look);
    return;
  }
  const failed = panels.filter((p) => p.state.$data.state.data?.errors?.length);
  fetch(`/drawn?${failed.map((p) => p.state.title).join()}`);
})();
