/** A file whose mutants the tests have to notice. */
export interface Mutated {
  readonly file: string;
  /** The test files that judge its mutants: few, because each mutant that lives meets all of them. */
  readonly tests: readonly string[];
  /** The percentage of its mutants that these tests kill at least, as measured. Left out: not measured. */
  readonly atLeast?: number;
}

const intents = (file: string, tests: readonly string[], atLeast?: number) =>
  judgedBy(`src/engine/intents/${file}.ts`, 'test/engine/intents', tests, atLeast);
const claims = (file: string, tests: readonly string[], atLeast?: number) =>
  judgedBy(`src/engine/claims/${file}.ts`, 'test/engine/claims', tests, atLeast);
const plan = (file: string, tests: readonly string[], atLeast?: number) =>
  judgedBy(`src/plan/${file}.ts`, 'test', tests, atLeast);

/** The money path: the files that decide what is bought, and what is deleted. */
export const mutated: readonly Mutated[] = [
  intents('outcome', ['disposition', 'proof-answer'], 98),
  judgedBy('src/core/attribute.ts', 'test/core', ['attribute'], 98),
  intents('settle', ['settle'], 100),
  intents('record', ['record'], 96),
  intents('evidence', ['evidence-step'], 99),
  intents('ask-key', ['ask-key-step'], 96),
  intents('probe-key', ['ask-key-step', 'begin', 'observe-keys'], 96),
  intents('prove', ['prove-step'], 96),
  intents('begin', ['begin', 'write-slot'], 98),
  intents('endings', ['endings', 'question'], 99),
  intents('transfer', ['transfer-step'], 96),
  intents('held', ['recover-step'], 96),
  intents('next-incarnation', ['begin', 'recover-step'], 97),
  intents('reserve-key', ['reserve-key-step'], 97),
  intents('not-there', ['after-absence', 'endings', 'evidence-step', 'recover-step'], 95),
  intents('bound-by', ['bound-by-step', 'transfer-step'], 95),
  intents('capacity', ['endings'], 98),
  intents('pauses', ['pauses-step'], 96),
  intents('revalidate', ['replacement-step', 'begun-earlier'], 96),
  plan('guards', ['plan/guard-table'], 97),
  plan('purchases', ['plan/purchases'], 98),
  plan('lost-state', ['plan/purchases'], 96),
  plan('unmanaged', ['plan/unmanaged'], 97),
  claims('line', ['lines', 'take-back'], 96),
  claims('claims', ['claims', 'holders', 'identity'], 97),
  claims('moves', ['renames'], 96),
  claims('release', ['holders', 'released'], 97),
  claims('run-state', ['run-state'], 97),
  claims('scope', ['scope'], 96),
  claims('unidentified', ['unidentified'], 99),
  judgedBy('src/view/bill.ts', 'test/view', ['bill']),
  judgedBy('src/engine/run/unreached-keys.ts', 'test/engine/intents', ['reserve-key-step'], 95),
  judgedBy('src/engine/run/recover.ts', 'test/engine/intents', ['recover-step'], 96),
  judgedBy('src/engine/run/look-up.ts', 'test/engine/intents', ['recover-step'], 96),
];

function judgedBy(file: string, folder: string, tests: readonly string[], atLeast?: number): Mutated {
  const paths = tests.map((each) => `${folder}/${each}.test.ts`);
  return { file, tests: paths, ...(atLeast === undefined ? {} : { atLeast }) };
}
