import type { Contract } from './contract.ts';
import type { DocumentedOperation } from './document.ts';

/** A rule of a firewall in which each field that the document shows has a value. */
export const rule = {
  direction: 'in',
  action: 'accept',
  enabled: true,
  protocol: 'tcp',
  destination_port: '80,443',
  description: 'web',
};

/** The path and the body of a write that succeeds, for each operation of the document. */
export async function validWrite(
  api: Contract,
  operation: DocumentedOperation,
): Promise<[path: string, body?: Record<string, unknown>]> {
  const path = await api.existing(operation.path);
  switch (operation.id) {
    case 'POST /isos':
      return [path, { url: 'https://images.example/other.iso' }];
    case 'POST /networks':
      return [path, { name: 'backend', cidr: '10.0.0.0/24' }];
    case 'POST /servers':
      return [path, { ...(await api.serverBody({ public_ipv4: { new: true }, ssh_keys: [101] })) }];
    case 'POST /servers/{id}/network-interfaces':
      return [path, { network_id: (await api.network('backend')).id }];
    case 'PUT /servers/{id}/firewall':
      return [path, { enabled: false, policy_in: 'drop', rules: [rule] }];
    case 'PUT /servers/{id}/iso':
      return [path, { iso_id: (await api.iso()).id }];
    case 'POST /server-images':
      return [path, { server_id: (await api.server()).id, name: 'image' }];
    default:
      return [path];
  }
}
