// Writes the manual pages into `man`, for `npm install --global .` and `npm pack`: from the options and commands of the
// bundle, whose build runs this.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { manualPages } from '../dist/app/man.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const folder = new URL('../man/', import.meta.url)
const pages = manualPages(version)
mkdirSync(folder, { recursive: true })
// Two programs may write at the same time, and one that packs meanwhile must find whole pages.
for (const [name, text] of pages) {
  const draft = new URL(`.${name}-${process.pid}`, folder)
  writeFileSync(draft, text)
  renameSync(draft, new URL(name, folder))
}
for (const name of readdirSync(folder))
  if (!name.startsWith('.') && !pages.has(name)) rmSync(new URL(name, folder), { force: true })
