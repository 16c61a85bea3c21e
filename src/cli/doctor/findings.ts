import { outside, type Remedy, resolveText } from '../../core/remedy.ts';

/** The result of one check. `unknown`: no check is possible without a change. */
export interface Finding {
  readonly id: string;
  readonly level: 'ok' | 'info' | 'unknown' | 'warning' | 'error';
  readonly message: string;
  /** The actions for the operator, if any. */
  readonly remedies: readonly Remedy[];
}

function atLevel(level: Finding['level']) {
  return (id: string, message: string, advice: string | readonly Remedy[] = []): Finding => {
    return { id, level, message, remedies: typeof advice === 'string' ? [outside(advice)] : advice };
  };
}

/** Findings of each level. */
export const check = {
  ...{ ok: atLevel('ok'), info: atLevel('info'), unknown: atLevel('unknown') },
  ...{ warning: atLevel('warning'), error: atLevel('error') },
};

/** The public JSON of a finding. */
export function findingJson({ remedies, ...finding }: Finding) {
  return { ...finding, advice: remedies.length === 0 ? null : resolveText(remedies), remedies };
}
