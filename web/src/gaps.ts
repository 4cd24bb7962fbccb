// Remembers the nodes that answers lacked. When such a node answers again, what the page has loaded
// lacks its past, so the page loads everything again.

const PAUSE_MS = 15000; // between two times: a node may be late again and again

export class Gaps {
  private readonly lacking = new Set<string>();
  private closable = false;
  private closedAt = -Infinity;

  // Takes the header X-Sonde-Missing of an answer that all nodes were asked for.
  note(header: string | null): void {
    const missing = new Set<string>();
    for (const [, host] of (header ?? '').matchAll(/(?:^|, )([^\s,()]+) \(/g)) missing.add(host!);
    // A header that ends with "and 7 more" does not name all missing nodes.
    if (!/ more$/.test(header ?? '')) {
      for (const host of this.lacking) {
        if (missing.has(host)) continue;
        this.lacking.delete(host);
        this.closable = true;
      }
    }
    for (const host of missing) this.lacking.add(host);
  }

  // True if loading everything again would close a gap. The caller then does so.
  take(nowMs: number): boolean {
    if (!this.closable || nowMs - this.closedAt < PAUSE_MS) return false;
    this.closable = false;
    this.closedAt = nowMs;
    return true;
  }
}
