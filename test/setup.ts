/** `SEED=7 npm test` draws the same examples each time; without it every run draws its own. */
const { SEED } = process.env;

if (SEED !== undefined) {
  const { configureGlobal } = await import('fast-check');
  configureGlobal({ seed: Number(SEED) });
}
