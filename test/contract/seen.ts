/** What the suite has exercised so far, for the test that nothing documented was left out. */
export class Seen {
  private readonly answers = new Set<string>();
  private readonly codes = new Set<string>();

  /** One answer that a test has seen: `POST /ips`, 409, `ip_in_use`. */
  note(operation: string, status: number, code: string | undefined): void {
    this.answers.add(`${operation} ${status}`);
    if (code !== undefined) this.codes.add(code);
  }

  /** The statuses with which the operation has answered. */
  statuses(operation: string): readonly number[] {
    return [...this.answers]
      .filter((answer) => answer.startsWith(`${operation} `))
      .map((answer) => Number(answer.slice(operation.length + 1)));
  }

  hasCode(code: string): boolean {
    return this.codes.has(code);
  }
}
