/** Text of a manual page: nothing in it is a request or an escape, and a hyphen is the one that a reader copies. */
export function roff(text: string): string {
  const escaped = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll("'", '\\(aq').replaceAll('`', '')
  return escaped.replace(/^\./gm, '\\&.').replace(/[^\n -~]/gu, inCode)
}

function inCode(character: string): string {
  return `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`
}

export function bold(text: string): string {
  return `\\fB${roff(text)}\\fR`
}

export function italic(text: string): string {
  return `\\fI${roff(text)}\\fR`
}

export function section(title: string, ...lines: readonly string[]): string {
  return [`.SH ${title}`, ...lines].join('\n')
}

/** A term and its description below it. */
export function term(name: string, ...description: readonly string[]): string {
  return ['.TP', name, ...description].join('\n')
}
