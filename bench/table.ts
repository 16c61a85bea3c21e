/** One measured figure: a ratio or a count, never a bare time. */
export interface Row {
  readonly figure: string;
  readonly value: number;
  readonly aim: string;
}

export function printTable(rows: readonly Row[]): void {
  const width = Math.max(...rows.map(({ figure }) => figure.length));
  for (const { figure, value, aim } of rows) {
    process.stdout.write(`${figure.padEnd(width)}  ${value.toFixed(3).padStart(10)}  ${aim}\n`);
  }
}
