import { piecesOf, type Remedy } from '../../core/remedy.ts';
import { printable } from '../../core/text.ts';
import type { Paint } from '../terminal.ts';

/**
 * Each remedy on a line of its own, the commands with the flags of the call. The case in which a command is right is
 * a comment of the shell, so that the whole line can be copied. Several steps have one line each.
 */
export function remedyLines(remedies: readonly Remedy[], paint: Paint, indent = '      '): string[] {
  return remedies.flatMap((remedy, at) => {
    const head = `${indent}${at === 0 ? '→' : '  or'} `;
    const [first, ...further] = piecesOf(remedy, paint.flags);
    if (first === undefined) return [];
    const { when } = remedy;
    const shown = (piece: typeof first) =>
      paint('cyan', printable('command' in piece ? piece.command : piece.text));
    if (further.length > 0) {
      const steps = [first, ...further].map((piece, step) => `${indent}     ${step + 1}. ${shown(piece)}`);
      return [`${head}${printable(when === undefined ? 'in this order' : when)}:`, ...steps];
    }
    if (when === undefined) return [`${head}${shown(first)}`];
    const comment = 'command' in first ? `  # ${when}` : ` (${when})`;
    return [`${head}${shown(first)}${paint('dim', printable(comment))}`];
  });
}
