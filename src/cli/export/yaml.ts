import { Document, isMap, isScalar, isSeq, type Node, visit, type YAMLMap } from 'yaml';
import { withoutSeals } from '../../core/hidden-texts.ts';
import { mapTexts } from '../../core/json.ts';
import { escapeUnseenInLines, hasUnseen, printable } from '../../core/text.ts';
import type { ExportedEntry, ExportedSpec } from './spec.ts';

/** The spec as readable YAML: short maps in one line, notes above the entries that they describe. */
export function exportedYaml(spec: ExportedSpec): string {
  const document = new Document(exportedValue(spec));
  // Only double quotes allow an escape sequence.
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && hasUnseen(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  document.commentBefore = spec.head.map(comment).join('\n');
  const root = document.contents as YAMLMap<
    { value: string; spaceBefore?: boolean; commentBefore?: string },
    Node
  >;
  const lists = new Map(Object.entries(spec.entries));
  for (const pair of root.items) {
    if (pair.key.value !== 'version') pair.key.spaceBefore = true;
    const entries = lists.get(pair.key.value);
    if (pair.key.value === 'project' && isMap(pair.value)) pair.value.flow = true;
    if (entries !== undefined && isMap(pair.value)) decorate(pair.value, entries);
  }
  const end =
    spec.leftOut.length === 0
      ? ''
      : `\n# Left out:\n${spec.leftOut.map((each) => `#${comment(each)}`).join('\n')}\n`;
  return escapeUnseenInLines(document.toString({ lineWidth: 120, flowCollectionPadding: true }) + end);
}

/** The spec as plain data, for JSON. A value from the environment is written as its variable again. */
export function exportedValue(spec: ExportedSpec): Record<string, unknown> {
  const entries = (list: readonly ExportedEntry[]) =>
    Object.fromEntries(list.map(({ name, fields }) => [name, mapTexts(fields, inFile)]));
  return {
    version: 1,
    project: { id: spec.projectId },
    ...Object.fromEntries(
      Object.entries(spec.entries).flatMap(([map, list]) =>
        list.length === 0 ? [] : [[map, entries(list)]],
      ),
    ),
  };
}

/** A text from the environment as its variable. Another text that resembles a variable is escaped. */
function inFile(text: string): string {
  const written = withoutSeals(text);
  return written === text ? text.replace(/\$\{\s*env\s*[:.]/gi, '$$$&') : written;
}

function decorate(map: YAMLMap, entries: readonly ExportedEntry[]): void {
  for (const { key, value } of map.items) {
    // Not by place: names that are numbers come first in an object.
    const notes = (isScalar(key) && entries.find(({ name }) => name === key.value)?.notes) || [];
    if (isScalar(key) && notes.length > 0)
      (key as { commentBefore?: string }).commentBefore = notes.map(comment).join('\n');
    fold(value, 0);
  }
}

/** Writes a short map or list in one line. The limit is lower for a whole entry of the spec than for its values. */
function fold(node: unknown, depth: number): void {
  if (!isMap(node) && !isSeq(node)) return;
  const width = JSON.stringify(node.toJSON()).length;
  if (width < 100 && !(depth === 0 && width > 50)) {
    node.flow = true;
    return;
  }
  for (const item of node.items) {
    const inner =
      typeof item === 'object' && item !== null && 'value' in item && 'key' in item ? item.value : item;
    fold(inner, depth + 1);
  }
}

function comment(text: string): string {
  return ` ${printable(text)}`;
}
