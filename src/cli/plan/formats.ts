/** The output formats of a plan. */
export const planFormats = ['text', 'json', 'markdown', 'svg'] as const;
export type PlanFormat = (typeof planFormats)[number];
