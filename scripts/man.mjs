// Writes the manual pages into `man`, as `npm pack` needs them: from the options and commands of the compiled sources.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { manualPages } from '../dist/src/cli/man.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const folder = new URL('../man/', import.meta.url)
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
for (const [name, text] of manualPages(version)) writeFileSync(new URL(name, folder), text)
