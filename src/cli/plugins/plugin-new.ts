import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { packageFolder } from '../../common/files/package-folder.js'
import { version } from '../../common/files/version.js'
import { nameProblem } from '../../plugins/loading/plugin-name.js'
import { type Config, ConfigError } from '../config/config.js'
import { Failure } from '../failure.js'
import { pluginTemplate } from './plugin-template.js'

export interface NewFlags {
  /** An npm version specifier: a range of versions, or `file:` and a folder. */
  readonly dealgate?: string
}

/** `dealgate plugin new`: creates a working plugin in a new folder. Never overwrites a file. */
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

/**
 * The specifier of this package for a package.json in `folder`: a version if npm has installed it from a registry, else
 * a folder. A registry may not have the code of a clone or tarball, or may have another author's package of that name.
 */
function thisDealgate(folder: string): string {
  const own = packageFolder()
  return isFromRegistry(own) ? `^${version()}` : `file:${relative(folder, own).split(sep).join('/')}`
}

/**
 * Reads the hidden lockfile that npm writes into the folder it installs into:
 * https://docs.npmjs.com/cli/configuring-npm/package-lock-json#hidden-lockfiles
 */
function isFromRegistry(own: string): boolean {
  try {
    const { packages } = JSON.parse(readFileSync(join(own, '..', '.package-lock.json'), 'utf8'))
    const noted = packages['node_modules/dealgate']
    if (noted === undefined || noted.link === true) return false
    // With `omit-lockfile-registry-resolved`, npm omits the address of a registry, but not of a file or repository.
    return noted.resolved === undefined || /^https?:.*\/-\/dealgate-[^/]+\.tgz$/.test(noted.resolved)
  } catch {
    return false
  }
}
