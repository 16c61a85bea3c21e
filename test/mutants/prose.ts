/** The part of a Babel node that decides. */
interface Node {
  readonly type: string;
  readonly value?: unknown;
  readonly quasis?: readonly { readonly value: { readonly raw: string } }[];
  readonly callee?: { readonly property?: { readonly name?: string }; readonly name?: string };
  readonly expression?: Node;
}

/** Text for people: a changed sentence changes nothing that the engine does. */
function isProse(node: Node): boolean {
  switch (node.type) {
    case 'StringLiteral':
      return typeof node.value === 'string' && node.value.includes(' ');
    case 'TemplateLiteral':
      return node.quasis?.some(({ value }) => value.raw.includes(' ')) === true;
    case 'CallExpression':
      return node.callee?.property?.name === 'tell' || node.callee?.name === 'warn';
    case 'ExpressionStatement':
      return node.expression?.type === 'CallExpression' && isProse(node.expression);
    default:
      return false;
  }
}

/** Leaves out the mutants of messages, of progress reports and of warnings. */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'prose',
    value: {
      shouldIgnore: ({ node }: { readonly node: Node }) => (isProse(node) ? 'text for people' : undefined),
    },
  },
];
