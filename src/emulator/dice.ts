/**
 * Random numbers. Their state is one 32-bit number inside the world, so that a restored
 * snapshot or data file continues the same sequence. (mulberry32)
 */
interface Dice {
  dice: number;
}

/** The next number in [0, 1). */
export function roll(holder: Dice): number {
  holder.dice = (holder.dice + 0x6d2b79f5) >>> 0;
  let mixed = holder.dice;
  mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
}

/** A whole number between both ends, both included. */
export function between(holder: Dice, [least, most]: Range): number {
  return least + Math.floor(roll(holder) * (most - least + 1));
}

/** `length` characters of lower-case hexadecimal. */
export function hex(holder: Dice, length: number): string {
  let text = '';
  while (text.length < length) {
    text += Math.floor(roll(holder) * 0x10000)
      .toString(16)
      .padStart(4, '0');
  }
  return text.slice(0, length);
}

/** The ends of a range of whole numbers, both included. */
export type Range = readonly [least: number, most: number];
