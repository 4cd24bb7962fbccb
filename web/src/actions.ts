// The actions that change the job: an annotation, and a restart without a node. Each asks first.
// The browser's session may only view, so the first action also asks for a token. The page trades
// it for the key of its session (server.ts), and keeps only the key, in its memory.

import { h, say } from './dom';
import type { Job } from './job';
import { filterText, parseFilter } from './model';
import { Refused, type Rights, type Role, type Source } from './source';

const ROLES: Role[] = ['view', 'write', 'control'];
const TOKEN_COMMANDS = { write: 'sonde token --write', control: 'sonde token --control' };

export const includes = (role: Role, needed: Role) => ROLES.indexOf(role) >= ROLES.indexOf(needed);

// A time as the value of <input type="datetime-local">: local, with milliseconds.
export function localTime(ms: number): string {
  const d = new Date(Math.round(ms));
  const two = (n: number, digits = 2) => String(n).padStart(digits, '0');
  return `${two(d.getFullYear(), 4)}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${two(d.getMilliseconds(), 3)}`;
}

// The nodes that a restart can leave out: all but the first one, where the command was started.
export function excludable(job: Job): string[] {
  const first = job.status?.runs[0]?.host ?? job.status?.files.find((f) => f.host)?.host;
  return [...new Set([...job.nodes.map((n) => n.host), ...(job.status?.missing ?? [])])].filter((host) => host !== first);
}

interface Action {
  title: string;
  heading: string;
  needs: 'write' | 'control';
  fields: HTMLElement[];
  act: () => Promise<void>;
}

class ActionDialog {
  readonly element: HTMLDialogElement;
  private readonly token = h('input', { type: 'password', autocomplete: 'off', spellcheck: 'false' });
  private readonly tokenField: HTMLElement;
  private readonly error = h('p', { class: 'alarm', role: 'alert' });
  private readonly send = h('button', { type: 'submit' });

  constructor(
    private readonly actions: Actions,
    private readonly action: Action,
  ) {
    const command = h('code', {}, TOKEN_COMMANDS[action.needs]);
    this.tokenField = h('label', {}, h('span', {}, 'This browser may only view. Token that ', command, ' prints: '), this.token);
    say(this.send, action.title);
    const submit = (e: Event) => {
      e.preventDefault();
      void this.submit();
    };
    const cancel = h('button', { type: 'button', click: () => this.element.close() }, 'cancel');
    const form = h('form', { submit }, ...action.fields, this.tokenField, this.error, h('p', {}, this.send, cancel));
    this.element = h('dialog', { class: 'action', 'aria-label': action.title }, h('h2', {}, action.heading), form);
    this.element.addEventListener('close', () => (this.token.value = ''));
  }

  open(): void {
    say(this.error, '');
    this.showToken();
    this.element.showModal();
  }

  private showToken(): void {
    this.tokenField.hidden = this.actions.may(this.action.needs);
    this.token.required = !this.tokenField.hidden;
  }

  private async submit(): Promise<void> {
    this.send.disabled = true;
    try {
      if (!this.tokenField.hidden) await this.actions.raise(this.token.value.trim(), this.action.needs);
      await this.action.act();
      this.element.close();
      this.actions.done(this.action.title);
    } catch (e) {
      say(this.error, (e as Error).message);
      this.showToken();
    }
    this.send.disabled = false;
  }
}

export class Actions {
  readonly elements: HTMLElement[];
  private rights: Rights | null = null;
  private readonly text = h('input', { type: 'text', required: true, maxlength: '1000' });
  private readonly time = h('input', { step: '0.001', required: true });
  private readonly tags = h('input', { type: 'text', placeholder: 'rank=3', spellcheck: 'false' });
  private readonly node = h('select', { required: true });
  private readonly annotation: ActionDialog;
  private readonly exclusion: ActionDialog;

  // `done` is called after an action, with its name.
  constructor(
    private readonly source: Source,
    readonly done: (title: string) => void,
  ) {
    const label = (text: string, field: HTMLElement) => h('label', {}, h('span', {}, text), field);
    this.annotation = new ActionDialog(this, {
      title: 'annotate',
      heading: 'Annotate the job',
      needs: 'write',
      fields: [label('text ', this.text), label('time ', this.time), label('tags ', this.tags)],
      act: () => source.annotate(this.text.value, Date.parse(this.time.value), parseFilter(this.tags.value)),
    });
    this.exclusion = new ActionDialog(this, {
      title: 'restart without a node',
      heading: 'Restart without a node',
      needs: 'control',
      fields: [
        h('p', {}, 'The command stops on all nodes, and starts again without this node, with a reserve in its place. If there is no reserve, the run ends, unless it was started with --exhaust-resources.'),
        label('node ', this.node),
      ],
      act: () => source.restartWithout([this.node.value]),
    });
    this.elements = [this.annotation.element, this.exclusion.element];
  }

  // Requests once what this browser may do in a running job. Recordings cannot be changed.
  async load(live: boolean): Promise<void> {
    if (!live) this.rights = null;
    else this.rights ??= await this.source.rights();
  }

  // The actions that the job accepts.
  offered(job: Job): { annotate: boolean; restart: boolean } {
    return { annotate: this.rights?.annotations ?? false, restart: (this.rights?.restarts ?? false) && excludable(job).length > 0 };
  }

  may(needs: Role): boolean {
    return this.rights !== null && includes(this.rights.role, needs);
  }

  async raise(token: string, needs: Role): Promise<void> {
    const rights = await this.source.raise(token);
    if (!includes(rights.role, needs)) throw new Refused('This token allows less than this action needs.');
    this.rights = rights;
  }

  annotate(job: Job, atMs: number, tags: Record<string, string>): void {
    if (!this.offered(job).annotate) return;
    this.text.value = '';
    this.time.type = 'datetime-local'; // takes up to 9 ms, so not at the start of the page
    this.time.value = localTime(atMs);
    this.tags.value = filterText(tags);
    this.annotation.open();
  }

  // `host`: the node to select first.
  restart(job: Job, host: string | undefined): void {
    if (!this.offered(job).restart) return;
    this.node.replaceChildren(...excludable(job).map((name) => h('option', { value: name }, name)));
    if (host !== undefined && excludable(job).includes(host)) this.node.value = host;
    this.exclusion.open();
  }
}
