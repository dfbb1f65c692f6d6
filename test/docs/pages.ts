import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** The README and every page of the documentation, from the top of the repository. */
export const pages: readonly string[] = [
  'README.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path))
    .sort(),
]
