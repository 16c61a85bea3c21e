import { type Remedy, remedyText } from '../../core/remedy.ts';
import { type Paint, printable } from '../terminal.ts';

/** Each remedy on a line of its own, the commands with the flags of the call. */
export function remedyLines(remedies: readonly Remedy[], paint: Paint, indent = '      '): string[] {
  return remedies.map((remedy, at) => {
    const text = printable(remedyText(remedy, paint.flags));
    return `${indent}${at === 0 ? '→' : '  or'} ${paint('cyan', text)}`;
  });
}
