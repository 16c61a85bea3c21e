import { type CommonFlags, isUrl } from '../config.ts';

/** Commands that a hint may name, and that mean the same project only with the same flags. */
const commands =
  /vdcsync (plan|apply|destroy|export|adopt|forget|ignore|resolve|status|doctor|history|run)\b/g;

/** Gives the commands that a text for a person names the flags of the call that it answers. */
export function carrying(flags: CommonFlags): (text: string) => string {
  const words = [
    ...(flags.emulator === true ? ['--emulator'] : []),
    ...(flags.file ?? []).flatMap((file) => ['-f', quoted(file)]),
    // A URL may hold a password, which no message repeats.
    ...(flags.state === undefined ? [] : ['--state', isUrl(flags.state) ? 'URL' : quoted(flags.state)]),
    ...(flags.apiProfile === undefined ? [] : ['--api-profile', quoted(flags.apiProfile)]),
  ];
  if (words.length === 0) return (text) => text;
  return (text) => text.replace(commands, (command) => `${command} ${words.join(' ')}`);
}

/** As a shell takes it. */
function quoted(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
