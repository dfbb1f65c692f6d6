/** Texts that differ from run to run. The page shows one; any other of the same form fits it. */
const FORMS: readonly { readonly shown: RegExp; readonly fits: string; readonly named?: true }[] = [
  { shown: /…/, fits: '[\\s\\S]*?' },
  {
    shown: /\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?/,
    fits: '\\d{4}-\\d\\d-\\d\\d[ T]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?',
  },
  { shown: /\bbaf[a-z2-7]{20,}/, fits: 'baf[a-z2-7]+', named: true },
  { shown: /\bj-[0-9A-Za-z]{10,}/, fits: 'j-[0-9A-Za-z]+', named: true },
  { shown: /\bDG[0-9A-F]{18}\b/, fits: 'DG[0-9A-F]{18}', named: true },
  { shown: /\b[0-9a-f]{40}\b/, fits: '[0-9a-f]{40}', named: true },
]
const ANY = new RegExp(FORMS.map(({ shown }) => `(${shown.source})`).join('|'), 'g')

/**
 * Compares output with what a page shows. Dates, CIDs and ids only need to have their form, and `…` stands for
 * anything.
 * @returns undefined where it does not fit; otherwise what stands for each id that the page shows
 */
export function compare(shown: string, output: string): ReadonlyMap<string, string> | undefined {
  const names: string[] = []
  let pattern = ''
  let end = 0
  for (const match of shown.matchAll(ANY)) {
    const form = FORMS[match.slice(1).findIndex((part) => part !== undefined)]
    pattern += escaped(shown.slice(end, match.index))
    pattern += form?.named ? `(${form.fits})` : form?.fits
    if (form?.named) names.push(match[0])
    end = match.index + match[0].length
  }
  const found = new RegExp(`^${pattern}${escaped(shown.slice(end))}$`).exec(output)
  return found ? new Map(names.map((name, index) => [name, found[index + 1] ?? ''])) : undefined
}

/** Output as a terminal shows it: a line that a carriage return begins anew has only its last text. */
export function asShown(output: string): string {
  return output
    .split('\n')
    .map((line) => line.trimEnd().split('\r').at(-1))
    .join('\n')
    .trim()
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
