// Defines the browser's globals that Grafana's packages need when they are loaded.
import { JSDOM } from 'jsdom';

const { window } = new JSDOM('<!doctype html><html><body></body></html>', {
  url: 'http://localhost/',
  pretendToBeVisual: true,
});
globalThis.window = window;
for (const name of [
  'document',
  'navigator',
  'HTMLElement',
  'Element',
  'Node',
  'MutationObserver',
  'DOMParser',
  'localStorage',
  'sessionStorage',
  'getComputedStyle',
  'location',
  'history',
  'requestAnimationFrame',
  'cancelAnimationFrame',
  'CustomEvent',
  'Event',
  'EventTarget',
  'KeyboardEvent',
  'MouseEvent',
  'Image',
  'SVGElement',
  'DocumentFragment',
  'Window',
]) {
  Object.defineProperty(globalThis, name, {
    value: window[name],
    configurable: true,
    writable: true,
  });
}
globalThis.matchMedia = window.matchMedia = () => ({
  matches: false,
  addListener() {},
  removeListener() {},
  addEventListener() {},
  removeEventListener() {},
});
globalThis.ResizeObserver = window.ResizeObserver = class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
globalThis.IntersectionObserver = window.IntersectionObserver = class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
window.fetch = globalThis.fetch;
globalThis.devicePixelRatio = 1;
globalThis.console.info = globalThis.console.log = () => {}; // standard output has only results
