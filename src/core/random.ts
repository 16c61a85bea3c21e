/** The only source of chance, so that a seed reproduces a run. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
}
