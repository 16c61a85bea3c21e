/** Forms in which a plan can be had. */
export const planFormats = ['text', 'json', 'markdown', 'svg', 'mermaid'] as const;
export type PlanFormat = (typeof planFormats)[number];
