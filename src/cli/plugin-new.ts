import { mkdir, writeFile } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Config, ConfigError } from '../config.js'
import { nameProblem } from '../registry/plugin-name.js'
import { Failure } from './failure.js'
import { pluginTemplate } from './plugin-template.js'
import { version } from './version.js'

export interface NewFlags {
  /** As npm takes it: a range of versions, or `file:` and a folder. */
  readonly dealgate?: string
}

/** `dealgate plugin new`: writes a plugin that works into a folder of its own. Nothing that is there is written over. */
export async function newPlugin(_config: Config, name: string, { dealgate }: NewFlags): Promise<void> {
  const problem = nameProblem(name)
  if (problem) throw new ConfigError([`${name}: a plugin ${problem}`])
  const folder = `dealgate-plugin-${name}`
  try {
    await mkdir(folder)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    throw new Failure(`There is a ${resolve(folder)} already: remove it, or choose another name.`, { cause })
  }
  for (const [file, content] of Object.entries(pluginTemplate(name, dealgate ?? thisDealgate(resolve(folder)))))
    await writeFile(join(folder, file), content, { flag: 'wx' })
  process.stdout.write(`${folder} is written. Next:
  cd ${folder}
  npm install
  npm test
  npx dealgate serve --plugin .
`)
}

/** This very package, as a package.json in `folder` asks for it: by version if npm has installed it, else by its own folder, for no registry may have it. */
function thisDealgate(folder: string): string {
  const own = fileURLToPath(new URL('../../../', import.meta.url))
  return own.includes(`${sep}node_modules${sep}`)
    ? `^${version()}`
    : `file:${relative(folder, own).split(sep).join('/')}`
}
