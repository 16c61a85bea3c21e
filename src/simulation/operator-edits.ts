import type { Blocked } from '../core/plan.ts';
import type { Stage } from './stage.ts';
import type { SpecModel } from './story.ts';

/** An entry put back may name others that have left too: then the whole file is put back. */
export function valid(stage: Stage, file: SpecModel | undefined): SpecModel | undefined {
  if (file === undefined) return undefined;
  try {
    stage.load(file);
    return file;
  } catch {
    return stage.story.specs[0];
  }
}

/** The edit that a message asks for; `undefined` where it asks for none. */
export function edit(stage: Stage, file: SpecModel, { key, code, resolve }: Blocked): SpecModel | undefined {
  const [collection = '', name = ''] = key.split('.');
  const section =
    (file as unknown as Record<string, Record<string, Record<string, unknown>>>)[collection] ?? {};
  const withEntry = (entry: Record<string, unknown>): SpecModel => {
    stage.trace.add('op', `edits ${collection}.${name}: ${JSON.stringify(entry)}`);
    return { ...file, [collection]: { ...section, [name]: { ...section[name], ...entry } } };
  };
  if (code === 'dependency_blocked' && file.settings.drift === 'report')
    return { ...file, settings: { ...file.settings, drift: 'correct' } };
  const settings = /`(\w+): ([\w.-]+)` under `settings`/.exec(resolve);
  if (settings?.[1] !== undefined) {
    const value = JSON.parse(
      /^[\d.]+$|^(true|false)$/.test(settings[2] ?? '') ? (settings[2] ?? '') : `"${settings[2]}"`,
    );
    stage.trace.add('op', `edits settings.${settings[1]}: ${value}`);
    if (value === 'ignore') stage.vouched = true;
    return { ...file, settings: { ...file.settings, [settings[1]]: value } };
  }
  if (resolve.includes('`enabled: false`')) {
    return withEntry({ firewall: { ...(section[name]?.firewall as object), enabled: false } });
  }
  const holder = /write `iso: null` in servers\.(\S+),/.exec(resolve)?.[1];
  if (holder !== undefined) {
    stage.trace.add('op', `edits servers.${holder}: iso: null`);
    return { ...file, servers: { ...file.servers, [holder]: { ...file.servers[holder], iso: null } } };
  }
  if (code === 'server_type_not_supported') {
    stage.trace.add('op', `removes ${key}`);
    const { [name]: _image, ...others } = section;
    return { ...file, [collection]: others };
  }
  if (resolve.includes('use {reuse: true}')) return withEntry({ public_ipv4: { reuse: true } });
  if (resolve.includes('name another address')) return withEntry({ public_ipv4: { new: true } });
  if (code === 'disk_would_shrink' || code === 'size_unconfirmed')
    return withEntry({ replace: 'allowed', protect: false });
  if (resolve.includes('`replace: allowed`')) return withEntry({ replace: 'allowed' });
  if (code === 'protected' && section[name] !== undefined) return withEntry({ protect: false });
  const before = stage.story.specs.findLast(
    (spec) => (spec as unknown as Record<string, Record<string, unknown>>)[collection]?.[name] !== undefined,
  );
  const old = (before as unknown as Record<string, Record<string, Record<string, unknown>>>)?.[collection]?.[
    name
  ];
  if (
    /(put (its|the) entry (of \S+ )?back|keep its entry)/.test(resolve) ||
    resolve.includes(`put ${key} back`)
  ) {
    return old === undefined ? undefined : withEntry({ ...old, protect: false });
  }
  const restore = /restore (.*)$/.exec(resolve)?.[1];
  if (restore !== undefined) {
    const fields = [...restore.matchAll(/(\w+): ("[^"]*"|[^,`]+)/g)].map(([, field = '', value = '']) => [
      field,
      /^[\d"]/.test(value) && !/^[\d.]+\/\d+$/.test(value) ? JSON.parse(value) : value,
    ]);
    return withEntry(Object.fromEntries(fields));
  }
  return undefined;
}
