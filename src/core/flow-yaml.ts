/** A value as one line of YAML for an entry: `{ip: web}`, `[a, b]`, `"12"`. */
export function flowYaml(value: unknown): string {
  if (typeof value === 'string') return isPlain(value) ? value : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flowYaml).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${flowYaml(name)}: ${flowYaml(each)}`)
    .join(', ')}}`;
}

/** YAML reads it as this very text without quotes. */
function isPlain(text: string): boolean {
  if (!/^[A-Za-z0-9]([A-Za-z0-9 ./_-]*[A-Za-z0-9./_-])?$/.test(text)) return false;
  return !/^(true|false|null)$/i.test(text) && Number.isNaN(Number(text));
}
