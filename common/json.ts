/**
 * True when arrays and objects of a parsed JSON value are nested more than `levels` deep. Looks no deeper, so that a
 * body of a million brackets does not exhaust the stack: `JSON.parse` reads such a body, but `JSON.stringify` cannot
 * write it.
 */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1))
}

/**
 * True when an object of a parsed JSON value has a member `__proto__`. `JSON.parse` makes it an own property like any
 * other; code that copies members by assignment, and schemas that guard against that, drop it silently.
 */
export function hasPrototypeKey(value: unknown): boolean {
  const open = [value]
  while (open.length > 0) {
    const one = open.pop()
    if (typeof one !== 'object' || one === null) continue
    if (Object.hasOwn(one, '__proto__')) return true
    for (const member of Object.values(one)) if (typeof member === 'object') open.push(member)
  }
  return false
}

/** The value of a JSON text; undefined for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * True for a JSON text with an escape such as `\ud800` that is no half of a pair: its value is no Unicode text, which
 * UTF-8, databases and other programs replace or refuse.
 * @param json well-formed, decoded from UTF-8
 */
export function hasLoneSurrogate(json: string): boolean {
  if (!/\\u[dD][89a-fA-F]/.test(json)) return false
  return /\\u[dD][89a-fA-F]/.test(json.replace(/\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|[^u])/g, ''))
}

/** The object of a JSON text; undefined for any other text. */
export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = parseJson(text)
  return isRecord(value) ? value : undefined
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Returns a name that occurs twice in an object of this JSON; undefined if there is none. JSON.parse silently takes the
 * last one.
 * @param json well-formed
 */
export function repeatedName(json: string): string | undefined {
  /** Names in the enclosing objects; undefined stands for an array. */
  const around: (Set<string> | undefined)[] = []
  let text = ''
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:]/g)) {
    if (token === '{') around.push(new Set())
    else if (token === '[') around.push(undefined)
    else if (token === '}' || token === ']') around.pop()
    else if (token !== ':') text = token
    else {
      const name = JSON.parse(text) as string
      const names = around.at(-1)
      if (names?.has(name)) return name
      names?.add(name)
    }
  }
  return undefined
}
