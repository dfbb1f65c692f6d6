import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Links of a page to files and headings of this repository that do not exist. */
export function brokenLinks(page: string): string[] {
  return linksOf(readFileSync(page, 'utf8')).filter((link) => {
    const [path = '', anchor] = link.split('#')
    const file = path === '' ? page : join(dirname(page), path)
    if (!existsSync(file)) return true
    return anchor !== undefined && statSync(file).isFile() && !anchorsOf(readFileSync(file, 'utf8')).has(anchor)
  })
}

/** Pages that a page links to, from the top of the repository. */
export function linkedFrom(page: string): string[] {
  return linksOf(readFileSync(page, 'utf8')).map((link) => join(dirname(page), link.split('#')[0] ?? ''))
}

function linksOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)].map(([, link]) => link ?? '')
}

/** Names of the headings of a page, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const headings = [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading ?? '')
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

function withoutCode(text: string): string {
  return text.replace(/^ *```.*?^ *```/gms, '')
}
