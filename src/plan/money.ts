/** Adds decimal texts exactly: `sum(['0.10', '-0.2'])` is `-0.10`. At least two places are kept. */
export function sumDecimals(amounts: readonly string[]): string {
  const places = Math.max(2, ...amounts.map((amount) => amount.split('.')[1]?.length ?? 0));
  const total = amounts.reduce((sum, amount) => sum + scaled(amount, places), 0n);
  const digits = (total < 0n ? -total : total).toString().padStart(places + 1, '0');
  return `${total < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

export function negated(amount: string): string {
  return amount.startsWith('-') ? amount.slice(1) : `-${amount}`;
}

function scaled(amount: string, places: number): bigint {
  const [whole = '0', fraction = ''] = amount.replace('-', '').split('.');
  const value = BigInt(whole + fraction.padEnd(places, '0'));
  return amount.startsWith('-') ? -value : value;
}
