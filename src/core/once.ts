/** Computes the value at its first use. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Computes the value of each input at its first use, and keeps the value as long as the input. */
export function oncePer<Input extends object, Value>(make: (input: Input) => Value): (input: Input) => Value {
  const made = new WeakMap<Input, { readonly value: Value }>();
  return (input) => {
    const known = made.get(input) ?? { value: make(input) };
    made.set(input, known);
    return known.value;
  };
}
