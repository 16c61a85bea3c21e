// The choices of flags and arguments, apart from the commands, whose modules are loaded when they run.

/** The output formats of a plan. */
export const planFormats = ['text', 'json', 'markdown', 'svg'] as const;
export type PlanFormat = (typeof planFormats)[number];

/** The forms of `vdcsync output`; all but `json` and `env` are of servers alone. */
export const outputFormats = ['json', 'env', 'ansible', 'ssh-config'] as const;
export type OutputFormat = (typeof outputFormats)[number];

export const billFormats = ['text', 'json', 'csv', 'svg'] as const;
export type BillFormat = (typeof billFormats)[number];

/** Shells that have a completion script. */
export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const;
export type Shell = (typeof shells)[number];
