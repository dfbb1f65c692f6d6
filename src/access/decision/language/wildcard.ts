/** Any text. */
export const ANY = Symbol('*')
/** Any one character. */
export const ONE = Symbol('?')

/** One character of a pattern: a code point, or a wildcard. */
export type Token = string | typeof ANY | typeof ONE

/** Returns the tokens of a pattern in which `*` and `?` are wildcards. */
export function tokensOf(pattern: string): Token[] {
  return Array.from(pattern, (char) => (char === '*' ? ANY : char === '?' ? ONE : char))
}

/** The characters of a text: its code points. */
export type Chars = ArrayLike<string>

export function charsOf(text: string): Chars {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text) : text
}

/**
 * Matches in time bounded by the product of the lengths, which a regular expression from the pattern would not
 * guarantee.
 */
export function matchesTokens(pattern: readonly Token[], text: Chars): boolean {
  let p = 0
  let at = 0
  let star = -1
  let resume = 0
  while (at < text.length) {
    const token = pattern[p]
    if (token === ANY) {
      star = p++
      resume = at
    } else if (token !== undefined && (token === ONE || token === text[at])) {
      p++
      at++
    } else if (star >= 0) {
      p = star + 1
      at = ++resume
    } else return false
  }
  while (pattern[p] === ANY) p++
  return p === pattern.length
}

/** True if the pattern matches some text that starts with `beginning`. */
export function canBegin(pattern: readonly Token[], beginning: string): boolean {
  let states = closure(pattern, [0])
  for (const char of beginning) {
    const next = [...states].flatMap((state) => {
      const token = pattern[state]
      if (token === ANY) return [state]
      return token === ONE || token === char ? [state + 1] : []
    })
    states = closure(pattern, next)
  }
  return states.size > 0
}

/** Adds the states behind each `*`, which may stand for no text. */
function closure(pattern: readonly Token[], states: readonly number[]): Set<number> {
  const all = new Set(states)
  for (const state of all) if (pattern[state] === ANY) all.add(state + 1)
  return all
}
