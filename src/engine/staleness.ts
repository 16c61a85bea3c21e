/** For so long reads may show what was before, in ms. @assumption A9 */
export const staleMs = 60_000;
/** So far apart are the two looks that have to miss a resource before it counts as absent, in ms. @assumption A9 */
export const absenceGapMs = 60_000;
