import { shellWord } from '../../core/shell.ts';
import type { CommonFlags } from '../settings/config.ts';
import { stateWord } from '../settings/state-url.ts';
import type { Io } from '../terminal.ts';

/** Commands that a hint may name, and that mean the same project only with the same flags, with those it names itself. */
const commands =
  /vdcsync (?:plan|apply|destroy|export|adopt|forget|ignore|resolve|status|doctor|history|run|validate|rehearse)\b((?: --emulator| (?:-f|--overlay|--state|--api-profile|--prices) (?:'[^']*'|[^\s;,|`')]+))*)/g;

/** Results for a program: nothing in them is changed. */
const programs = new Set(['schema', 'completion', 'export', 'emulator', 'output', 'render']);
const programFormats = new Set(['json', 'yaml', 'svg', 'mermaid']);

/** A line of a log, as JSON or with its time. */
const isLog = /^(?:\{|\d{4}-\d\d-\d\dT)/;

/** A call, as far as it says which project is meant. */
export interface Call {
  readonly command: string;
  readonly flags: CommonFlags & { readonly format?: string };
}

/** Gives the commands that a text for an operator names the flags of the call that it answers. */
export function carrying(flags: CommonFlags, environment: Io['env']): (text: string) => string {
  const groups = [
    flags.emulator === true ? ' --emulator' : '',
    [
      ...(flags.file ?? []).map((file) => ` -f ${shellWord(file)}`),
      ...(flags.overlay ?? []).map((file) => ` --overlay ${shellWord(file)}`),
    ].join(''),
    flags.state === undefined ? '' : ` --state ${stateWord(flags.state, environment)}`,
    flags.apiProfile === undefined ? '' : ` --api-profile ${shellWord(flags.apiProfile)}`,
    flags.prices === undefined ? '' : ` --prices ${shellWord(flags.prices)}`,
  ].filter((words) => words !== '');
  if (groups.length === 0) return (text) => text;
  return (text) =>
    text.replace(commands, (command, named: string) => {
      const missing = groups.filter((words) => !named.includes(words.split(' ', 2).join(' ')));
      return `${command}${missing.join('')}`;
    });
}

/**
 * The streams of a call whose flags are known once it is under way: whatever is told there, be it a plan, a
 * warning while it is carried out or an error, names commands that mean the same project.
 */
export function carryingIo(io: Io, call: () => Call): Io {
  // Of a daemon with several projects each line of the log is about one of them, and has what means that one.
  const shown = (text: string) => (isLog.test(text) ? text : carrying(call().flags, io.env)(text));
  const result = (text: string) => {
    const { command, flags } = call();
    return programs.has(command) || programFormats.has(flags.format ?? '') ? text : shown(text);
  };
  return { ...io, stdout: writingThrough(io.stdout, result), stderr: writingThrough(io.stderr, shown) };
}

function writingThrough(stream: NodeJS.WriteStream, change: (text: string) => string): NodeJS.WriteStream {
  const write = (text: string | Uint8Array, ...rest: unknown[]) =>
    (stream.write as (...args: unknown[]) => boolean)(
      typeof text === 'string' ? change(text) : text,
      ...rest,
    );
  return new Proxy(stream, {
    get(target, name) {
      if (name === 'write') return write;
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
