const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const pattern = new RegExp(`^${octet}(?:\\.${octet}){3}$`);

/** Four numbers up to 255, without leading zeros. @source API §2 */
export function isIpv4(text: unknown): text is string {
  return typeof text === 'string' && pattern.test(text);
}
