// Parses server-sent events, however the network divides them.

export interface ServerEvent {
  event: string;
  data: string;
}

export class EventReader {
  private rest = '';

  push(text: string): ServerEvent[] {
    this.rest += text;
    const events: ServerEvent[] = [];
    for (let end = this.rest.indexOf('\n\n'); end >= 0; end = this.rest.indexOf('\n\n')) {
      let event = 'message';
      const data: string[] = [];
      for (const line of this.rest.slice(0, end).split('\n')) {
        if (line.startsWith('event:')) event = line.slice(6).trim();
        else if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
      }
      this.rest = this.rest.slice(end + 2);
      if (data.length) events.push({ event, data: data.join('\n') });
    }
    return events;
  }
}
