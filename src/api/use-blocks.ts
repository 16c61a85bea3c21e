import type { UseMemory } from './budget.ts';

/** The number of reads that one record covers. */
const blockSize = 8;
/** How long the reads of a block may be sent, in ms. */
const blockMs = 3_000;

interface Block {
  left: number;
  readonly from: number;
  readonly to: number;
  readonly recorded: Promise<void>;
}

/**
 * Records reads in blocks, because a shared database would otherwise get a statement for each read. A block is recorded
 * before its first read is sent, and as if all its reads were sent at its end. So the next process counts too many
 * reads, and never too few. Writes are recorded one by one.
 */
export function inBlocks(memory: UseMemory): UseMemory {
  const blocks = new Map<string, Block>();
  return {
    recentUse: (bucket, since) => memory.recentUse(bucket, since),
    note: (name) => memory.note(name),
    putNote: (name, value) => memory.putNote(name, value),
    async recordUse(bucket, at, since) {
      if (!bucket.endsWith(':reads')) return memory.recordUse(bucket, at, since);
      let block = blocks.get(bucket);
      if (block === undefined || block.left === 0 || at < block.from || at > block.to) {
        const to = at + blockMs;
        const recorded = memory.recordUse(bucket, to, since, blockSize);
        block = { left: blockSize, from: at, to, recorded };
        blocks.set(bucket, block);
      }
      block.left -= 1;
      try {
        await block.recorded;
      } catch (error) {
        if (blocks.get(bucket) === block) blocks.delete(bucket);
        throw error;
      }
    },
  };
}
