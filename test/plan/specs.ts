import fc from 'fast-check';

const networks = ['a', 'b', 'c'];
const ips = ['x', 'y', 'z'];
const isos = ['one', 'two'];
const servers = ['s1', 's2', 's3', 's4'];

const sizing = fc.constantFrom(
  'server_type: sliders-1, cores: 2, memory_mb: 2048, disk_gb: 20',
  'server_type: 3, cores: 4, memory_mb: 4096, disk_gb: 40',
  'server_type: plans-1, plan_id: 51',
  'server_type: gpu-fixed, gpu_package: l40s-1',
  'server_type: gpu-fixed, gpu_package: [l40s-2, l40s-1]',
);

interface ServerDraft {
  readonly name: string;
  readonly sizing: string;
  readonly image: string;
  readonly cards: readonly string[];
  readonly address: 'none' | 'new' | 'reuse' | 'ip';
  readonly firewall: 'none' | 'off' | 'on';
  readonly backup: boolean;
  readonly flags: string;
}

const serverDraft = (name: string): fc.Arbitrary<ServerDraft> =>
  fc.record({
    name: fc.constant(name),
    sizing,
    image: fc.constantFrom('ubuntu-24.04', 'debian-13'),
    cards: fc.subarray(networks),
    address: fc.constantFrom('none', 'new', 'reuse', 'ip'),
    firewall: fc.constantFrom('none', 'off', 'on'),
    backup: fc.boolean(),
    flags: fc.constantFrom(', replace: allowed', ', replace: allowed, keep_ip: true'),
  });

/** What a file says beside its settings, in every combination that the spec lets pass. */
export const resources: fc.Arbitrary<string> = fc
  .record({
    networks: fc.subarray(networks),
    cidr: fc.constantFrom(10, 20),
    ips: fc.subarray(ips),
    isos: fc.subarray(isos),
    servers: fc.subarray(servers).chain((names) => fc.tuple(...names.map(serverDraft))),
  })
  .map(({ networks: nets, cidr, ips: addresses, isos: images, servers: drafts }) => {
    const free = [...addresses];
    const entry = (draft: ServerDraft) => {
      // An address is one server's, and only what the main pool serves is on offer here.
      const ip = draft.address === 'ip' && !draft.sizing.includes('gpu') ? free.shift() : undefined;
      const address = {
        none: '',
        new: '{new: true}',
        reuse: '{reuse: true}',
        ip: ip === undefined ? '' : `{ip: ${ip}}`,
      };
      const wanted = address[draft.address];
      return [
        `{${draft.sizing}, image: ${draft.image}${draft.flags}`,
        `, network_interfaces: [${draft.cards.filter((each) => nets.includes(each)).join(', ')}]`,
        wanted === '' ? '' : `, public_ipv4: ${wanted}`,
        draft.firewall === 'none' ? '' : `, firewall: {enabled: ${draft.firewall === 'on' && wanted !== ''}}`,
        draft.backup ? ', backup: {max_age: 24h}' : '',
        '}',
      ].join('');
    };
    return [
      `networks: {${nets.map((name, at) => `${name}: {cidr: ${cidr}.${at}.0.0/24}`).join(', ')}}`,
      `ips: {${addresses.map((name) => `${name}: {}`).join(', ')}}`,
      `isos: {${images.map((name) => `${name}: {url: "https://mirror.example.com/${name}.iso"}`).join(', ')}}`,
      `servers: {${drafts.map((draft) => `${draft.name}: ${entry(draft)}`).join(', ')}}`,
      '',
    ].join('\n');
  });
