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
