/** Members of a section; undefined removes one. */
export type SectionMembers = Readonly<Record<string, string | undefined>>

const HEADER = /^\s*\[\s*(.*?)\s*\]/
const MEMBER = /^([^\s#;[=:][^=:]*?)\s*[=:]\s*(.*?)\s*$/

/** The members of a section of an INI file, as aws-cli reads it; undefined when the file has no such section. */
export function readSection(text: string, section: string): ReadonlyMap<string, string> | undefined {
  const lines = linesOf(text)
  const place = find(lines, section)
  if (!place) return undefined
  const members = lines.slice(place.start + 1, place.end).map((line) => MEMBER.exec(line))
  return new Map(members.flatMap((member) => (member ? [[member[1] ?? '', member[2] ?? '']] : [])))
}

/**
 * Changes members of one section, and adds the section at the end when there is none. Every other line stays as it is:
 * other sections, comments, and members of this section that are not named.
 */
export function changeSection(text: string, section: string, members: SectionMembers): string {
  const lines = linesOf(text)
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  const place = find(lines, section)
  const wanted = Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  if (!place) {
    const before = text === '' || text.endsWith('\n') ? text : text + newline
    const gap = before === '' || /(^|\n)\s*\n$/.test(before) ? '' : newline
    return before + gap + [`[${section}]`, ...wanted.map(([name, value]) => `${name} = ${value}`), ''].join(newline)
  }
  const left = new Map(wanted as [string, string][])
  const changed: string[] = []
  let drops = false
  for (const line of lines.slice(place.start + 1, place.end)) {
    // An indented line belongs to the member before it.
    if (drops && /^\s+\S/.test(line)) continue
    drops = false
    const name = MEMBER.exec(line)?.[1]
    if (name === undefined || !Object.hasOwn(members, name)) {
      changed.push(line)
      continue
    }
    drops = true
    const value = left.get(name)
    if (value !== undefined) changed.push(`${name} = ${value}${newline}`)
    left.delete(name)
  }
  let at = changed.length
  while (at > 0 && /^\s*([#;].*)?\s*$/.test(changed[at - 1] ?? '')) at--
  const added = [...left].map(([name, value]) => `${name} = ${value}${newline}`)
  const start = [...lines.slice(0, place.start + 1), ...changed.slice(0, at)]
  const last = start.length - 1
  if (added.length > 0 && !start[last]?.endsWith('\n')) start[last] += newline
  return [...start, ...added, ...changed.slice(at), ...lines.slice(place.end)].join('')
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\n)/)
}

function find(lines: readonly string[], section: string): { readonly start: number; readonly end: number } | undefined {
  const nameOf = (line: string) => HEADER.exec(line)?.[1]?.replace(/\s+/g, ' ').replaceAll('"', '')
  const start = lines.findIndex((line) => nameOf(line) === section)
  if (start < 0) return undefined
  const next = lines.findIndex((line, n) => n > start && nameOf(line) !== undefined)
  return { start, end: next < 0 ? lines.length : next }
}
