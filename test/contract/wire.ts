/** The resources as the suite reads them; what they owe in full stands in schemas/openapi.yaml. */
export interface Task {
  readonly id: string;
  readonly status: string;
  readonly is_terminal: boolean;
  readonly poll: string;
  readonly created_at: string;
}

export interface Ip {
  readonly id: number;
  readonly address: string;
  readonly server_id: number | null;
  readonly primary: boolean;
}

export interface Server {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly power: boolean;
  readonly ipv4: string | null;
  readonly ips: readonly Ip[];
}

export interface Network {
  readonly id: number;
  readonly name: string;
  readonly cidr: string;
  readonly is_default: boolean;
  readonly server_count: number;
}

export interface NetworkInterface {
  readonly id: string;
  readonly public: boolean;
  readonly network_id: number;
}

export interface Firewall {
  readonly enabled: boolean;
  readonly policy_in: string;
  readonly policy_out: string;
  readonly rules: readonly { readonly [field: string]: unknown }[];
}

export interface Backup {
  readonly id: string;
  readonly server_id: number;
  readonly status: string;
  readonly size_bytes: number | null;
  readonly created_at: string;
}

export interface Iso {
  readonly id: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

export interface ServerType {
  readonly id: number;
  readonly name: string;
  readonly pricing_mode: string;
  readonly gpu: boolean;
}

export interface Pricing {
  readonly server_type_id: number;
  readonly pricing_mode: string;
  readonly gpu_packages?: readonly { readonly key: string }[];
  readonly limits: unknown;
}

export interface ImageEntry {
  readonly id: string;
  readonly name: string;
  readonly type: string;
}

export interface Problem {
  readonly code: string;
  readonly status: number;
  readonly invalid_params?: readonly { readonly name: string; readonly reason: string }[];
}
