/** Documented bodies have about six levels. Deeper ones could exhaust the stack of recursive code. */
const mostLevels = 64;

/** The value of a JSON text from outside; `undefined` if the text is not JSON, or is nested too deeply. */
export function parseBounded(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether brackets outside of strings are nested too deeply. The check reads only the text and builds no value. */
export function isTooDeep(text: string): boolean {
  let levels = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === backslash) at += 1;
      else if (code === quote) inString = false;
    } else if (code === quote) inString = true;
    else if (code === openBracket || code === openBrace) levels += 1;
    else if (code === closeBracket || code === closeBrace) levels -= 1;
    if (levels > mostLevels) return true;
  }
  return false;
}

const [quote, backslash] = codes('"\\');
const [openBracket, closeBracket, openBrace, closeBrace] = codes('[]{}');

function codes(characters: string): number[] {
  return [...characters].map((each) => each.charCodeAt(0));
}
