/** The API's pattern; numbers may still be too large. @source API §4 */
export const cidrPattern = /^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/;

/** Without leading zeros and host bits. @assumption A19 */
export function normalCidr(cidr: string): string {
  const parsed = parseCidr(cidr);
  if (parsed === undefined) return cidr.trim();
  const { start, length } = parsed;
  return `${[24, 16, 8, 0].map((shift) => (start >>> shift) & 255).join('.')}/${length}`;
}

interface Named {
  readonly name: string;
  readonly cidr: string;
}

/** The name and the subnet identify a network. @source API §3 rule 5 */
export function isSameNetwork(one: Named, other: Named): boolean {
  return one.name.trim() === other.name.trim() && normalCidr(one.cidr) === normalCidr(other.cidr);
}

/** The error in a subnet that an operator wrote, as text. */
export function cidrProblem(cidr: string): string | undefined {
  const parsed = parseCidr(cidr);
  if (parsed === undefined)
    return `"${cidr}" is not a subnet: write four numbers up to 255, a slash, and a length up to 32, such as 10.20.0.0/24`;
  return parsed.address === parsed.start
    ? undefined
    : `${cidr} is the address of a host, not of a subnet; did you mean ${normalCidr(cidr)}?`;
}

/** A subnet as numbers, with its first and its last address. */
export interface AddressRange {
  readonly start: number;
  readonly end: number;
}

export function parseCidr(
  cidr: string,
): (AddressRange & { readonly address: number; readonly length: number }) | undefined {
  const [dotted = '', bits = ''] = cidr.trim().split('/');
  const groups = dotted.split('.').map(Number);
  const length = Number(bits);
  if (!cidrPattern.test(cidr.trim()) || groups.some((group) => group > 255) || length > 32) return undefined;
  const size = 2 ** (32 - length);
  const address = groups.reduce((sum, group) => sum * 256 + group, 0);
  const start = address - (address % size);
  return { address, length, start, end: start + size - 1 };
}
