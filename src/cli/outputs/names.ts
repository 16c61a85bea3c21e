/** The forms of `vdcsync output`; all but `json` and `env` are of servers alone. */
export const outputFormats = ['json', 'env', 'ansible', 'ssh-config'] as const;
export type OutputFormat = (typeof outputFormats)[number];
