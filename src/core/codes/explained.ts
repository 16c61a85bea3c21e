/**
 * Why an operator is asked: the closed list. `settles`: the answer settles the outcome of a write, or says to whom a
 * resource belongs, so `rehearse` counts the question; the other questions are about an outcome that is known.
 */
export const questionClasses = {
  policy: { title: 'a decision that the spec and its settings leave to the operator', settles: false },
  unmanaged: { title: 'an unmanaged resource that a creation could duplicate', settles: true },
  refusal: {
    title: 'a refusal that only the spec, the token, the payment or the provider can lift',
    settles: false,
  },
  task: { title: 'a task that failed and left a billed resource, or is past its deadline', settles: false },
  unseen: { title: 'a resource that no documented read shows', settles: true },
  candidates: { title: 'resources that the documented reads cannot distinguish', settles: true },
  expired: { title: 'an idempotency key that is 23 hours old', settles: true },
  none: { title: 'no question: a later run continues, or another operation comes first', settles: false },
} as const;

/** The reason why a blocked operation asks the operator. {@link questionClasses} explains each class. */
export type QuestionClass = keyof typeof questionClasses;

/** All that vdcsync says about a code: in the reference, in `vdcsync explain`, and in the list of questions. */
export interface Explained {
  readonly meaning: string;
  /** The next step of the operator. */
  readonly next: string;
  /** A situation in which the code appears. */
  readonly example: string;
  /** Commands or lines of the spec that end the situation: alternatives, not steps. */
  readonly ways?: readonly string[];
}

/** The codes of one class of questions. `why`: the reason why vdcsync cannot know the answer. */
export type QuestionTexts = Readonly<Record<string, Explained & { readonly why: string }>>;

/** `asks`: the class of the question to the operator, of a code that blocks an operation. */
export interface ExplainedCode extends Explained {
  readonly asks?: QuestionClass;
  readonly why?: string;
}
