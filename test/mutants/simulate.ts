import { existsSync } from 'node:fs';
import { violation } from '../simulation/plant.ts';
import { mutated } from './files.ts';
import { judged, lives, type Mutant, reportOf } from './run.ts';

/** Plays stories with each mutant that the last `npm run mutants` left alive. A mutant without a violation is named. */
export function mutatedText(source: string, { location, replacement }: Mutant): string {
  const lines = source.split('\n');
  const at = ({ line, column }: Mutant['location']['start']) =>
    lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, column - 1);
  return source.slice(0, at(location.start)) + replacement + source.slice(at(location.end));
}

if (import.meta.main) {
  const [stories = '200', part = ''] = process.argv.slice(2);
  if (!/^[1-9]\d*$/.test(stories)) {
    console.error(
      'npm run mutants:simulate -- [STORIES [PART-OF-A-PATH]]: the number of stories for each mutant',
    );
    process.exit(2);
  }
  for (const { file } of mutated) {
    if (!file.includes(part) || !existsSync(reportOf(file))) continue;
    const { source, mutants } = judged(file);
    for (const mutant of mutants.filter(lives)) {
      const text = mutatedText(source, mutant);
      const found = await violation(file.slice('src/'.length), text, ['--seeds', stories]);
      const where = `${file}:${mutant.location.start.line}:${mutant.location.start.column}`;
      console.log(
        `${found === undefined ? 'ALIVE' : 'killed'} ${where} ${mutant.replacement} ${found ?? ''}`,
      );
    }
  }
}
