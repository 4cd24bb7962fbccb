// The flame graph of the report: where the time of the shown range went.

import { fit } from './chart';
import { h, prepare } from './dom';
import * as format from './format';
import { pieces, tree } from './report_data';
import type { Node, Order, Piece } from './report_data';
import type { Scene } from './report_scene';

const FLAME_ROW = 20;

export class FlameGraph {
  order: Order = 'prefix';
  // names of the nodes from the root's child to the one that fills the width
  zoomedTo: string[] = [];
  pieces: Piece[] = [];
  private root: Node | null = null;
  private rootOf = '';
  readonly canvas = h('canvas', { role: 'img', tabindex: '0' });
  readonly element = h('div', { class: 'flame' }, this.canvas);

  constructor(private readonly scene: Scene) {}

  pieceAt(x: number, y: number): Piece | undefined {
    const width = this.element.clientWidth;
    return this.pieces.find((p) => Math.floor(y / FLAME_ROW) === p.depth && x >= p.x * width && x < (p.x + p.w) * width);
  }

  draw(): void {
    const key = `${this.scene.range.from} ${this.scene.range.to} ${this.order}`;
    if (this.rootOf !== key) {
      this.rootOf = key;
      this.root = tree(this.scene.data, this.scene.times, this.scene.stretches, this.scene.range, this.order);
    }
    const above: Node[] = [];
    let node = this.root!;
    for (const name of this.zoomedTo) {
      const next = node.children.get(name);
      if (!next) break;
      above.push(node);
      node = next;
    }
    const width = this.element.clientWidth;
    if (!width) return;
    this.pieces = pieces(node, above, 1 / width);
    const depth = Math.max(...this.pieces.map((p) => p.depth)) + 1;
    const height = depth * FLAME_ROW;
    this.canvas.style.height = `${height}px`;
    const c = prepare(this.canvas, width, height);
    c.font = this.scene.theme.font;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    for (const p of this.pieces) this.drawPiece(c, p, width, p.depth < above.length);
  }

  private drawPiece(c: CanvasRenderingContext2D, p: Piece, width: number, isAbove: boolean): void {
    const x = p.x * width;
    const w = Math.max(1, p.w * width - (p.w * width > 3 ? 1 : 0));
    const y = p.depth * FLAME_ROW;
    const plain = p.node.prefix < 0;
    c.globalAlpha = (this.scene.lit >= 0 && !plain && p.node.prefix !== this.scene.lit ? 0.15 : 1) * (isAbove ? 0.6 : 1);
    c.fillStyle = plain ? this.scene.theme.grid : this.scene.colour(p.node.prefix);
    c.fillRect(x, y, w, FLAME_ROW - 2);
    if (w > 24) {
      c.fillStyle = plain ? this.scene.theme.text : this.scene.theme.ground;
      c.globalAlpha = 1;
      c.fillText(fit(c, `${p.node.name}  ${format.duration(p.node.ms / 1000)}`, w - 8), x + 4, y + FLAME_ROW / 2 - 1);
    }
    c.globalAlpha = 1;
  }
}
