/** The part of a Babel path that decides. */
interface Path {
  readonly node: {
    readonly type: string;
    readonly value?: unknown;
    readonly quasis?: readonly { readonly value: { readonly raw: string } }[];
    readonly callee?: { readonly property?: { readonly name?: string }; readonly name?: string };
  };
}

/** Text for people: a changed sentence changes nothing that the engine does. */
function isProse({ node }: Path): boolean {
  switch (node.type) {
    case 'StringLiteral':
      return typeof node.value === 'string' && node.value.includes(' ');
    case 'TemplateLiteral':
      return node.quasis?.some(({ value }) => value.raw.includes(' ')) === true;
    case 'CallExpression':
      return node.callee?.property?.name === 'tell' || node.callee?.name === 'warn';
    default:
      return false;
  }
}

/** Leaves out the mutants of messages, of progress reports and of warnings. */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'prose',
    value: { shouldIgnore: (path: Path) => (isProse(path) ? 'text for people' : undefined) },
  },
];
