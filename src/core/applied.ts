import type { AppliedValues } from './catalogue.ts';
import { member } from './json.ts';

/** The applied values of a server that parts outside its kind use. */
interface AppliedServer {
  /** This state created the server. */
  readonly isCreated: boolean;
  /** Another copy of the state may have created the server, and bought an address for it. */
  readonly mayBeOlder: boolean;
  /** The name in the last applied entry. */
  readonly name: string | undefined;
  /** The name in the request that created the server. */
  readonly sentName: string | undefined;
  /** The last applied entry named an entry of `ips`. */
  readonly namesAddress: boolean;
  /** The server type, by id, and the package that the server was created with. */
  readonly typeId: number | undefined;
  readonly gpuPackage: string | undefined;
}

/** Reads `applied` of the binding of a server. Without a binding, and for an adopted server, there are no values. */
export function appliedServer(binding: AppliedValues | undefined): AppliedServer {
  const [entry, body] = [member(binding?.applied, 'entry'), member(binding?.applied, 'body')];
  const typeId = member(body, 'server_type_id');
  return {
    isCreated: body !== undefined && body !== null,
    mayBeOlder: body === undefined || body === null || member(binding?.applied, 'mayBeOlder') === true,
    name: textIn(entry, 'name'),
    sentName: textIn(body, 'name'),
    namesAddress: member(member(entry, 'public_ipv4'), 'ip') !== undefined,
    typeId: typeof typeId === 'number' ? typeId : undefined,
    gpuPackage: textIn(body, 'gpu_package'),
  };
}

function textIn(value: unknown, name: string): string | undefined {
  const text = member(value, name);
  return typeof text === 'string' ? text : undefined;
}
