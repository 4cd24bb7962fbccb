// Messages while the page has nothing to draw: no connection, no point yet.

import { h, say } from './dom';
import * as format from './format';
import type { Job } from './job';
import type { Connection } from './loader';

export class ConnectionBanner {
  readonly element = h('p', { class: 'banner', role: 'status', hidden: true });

  update(c: Connection, job: string): void {
    this.element.hidden = c.state === 'ok';
    if (c.state === 'lost') {
      const wait = Math.max(0, Math.ceil((c.retryAt - Date.now()) / 1000));
      say(
        this.element,
        `The server has not answered since ${format.clock(c.since)}; next try ${wait ? `in ${wait} s` : 'now'}. ` +
          (job ? `If the job has ended: sonde open ${job}` : ''),
      );
    } else if (c.state === 'unauthorized')
      say(this.element, 'This browser’s session has ended. Open the address with its token again; sonde status prints it.');
    document.documentElement.dataset.connection = c.state;
  }
}

export class NoPoint {
  readonly element = h('section', { class: 'empty', hidden: true });

  // Returns whether the job has no points.
  update(job: Job, any: boolean): boolean {
    const nothing = job.empty() && !any;
    this.element.hidden = !nothing;
    if (nothing && !this.element.firstChild)
      this.element.append(
        h('h2', {}, 'No point yet'),
        h('p', {}, 'Metrics appear here as soon as they have points. At level 1, only the program emits metrics: ', h('code', {}, 'echo "loss 0.5" | sonde put')),
      );
    return nothing;
  }
}
