import { readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** The conditions of `import`: https://nodejs.org/api/packages.html#conditional-exports */
const CONDITIONS = ['node', 'import', 'module-sync', 'default']

/**
 * Resolves a module as an import in `folder` would: a package by name, from the nearest node_modules at or above the
 * folder; a path that starts with `.` or `/`; a file URL. A path may be a folder: then its package.json determines the
 * file, or it is index.js. (Node 20 resolves only relative to the calling module.) Throws Error with a message for the
 * user.
 */
export async function resolveModule(specifier: string, folder: string): Promise<URL> {
  if (specifier.startsWith('file:')) return fileOf(fileURLToPath(specifier))
  if (/^(?:\.{0,2}[/\\]|\.{1,2}$|[A-Za-z]:[/\\])/.test(specifier)) return fileOf(resolve(folder, specifier))
  return packageFile(specifier, folder)
}

async function fileOf(path: string): Promise<URL> {
  const found = await kindOf(path)
  if (found === undefined) throw new Error(`there is no file or folder ${path}`)
  return found === 'file' ? pathToFileURL(path) : entryOf(path, '.')
}

async function packageFile(specifier: string, folder: string): Promise<URL> {
  const [, name, rest] = /^((?:@[^/@]+\/)?[^/@.][^/@]*)(\/.+)?$/.exec(specifier) ?? []
  if (name === undefined) throw new Error('this is neither a package name nor a path')
  for (let at = resolve(folder); ; at = dirname(at)) {
    const found = join(at, 'node_modules', name)
    if ((await kindOf(found)) === 'folder') return entryOf(found, `.${rest ?? ''}`)
    if (dirname(at) === at) break
  }
  throw new Error(
    `no such package in node_modules at or above ${resolve(folder)}: install it there, or begin the path of a file with ./`,
  )
}

/** Returns the file that a package exports at a subpath; `.` is the package itself. */
async function entryOf(folder: string, subpath: string): Promise<URL> {
  const { exports, main } = await packageJson(folder)
  const given = exports === undefined ? undefined : exported(exports, subpath)
  const candidates =
    exports !== undefined
      ? [given]
      : subpath !== '.'
        ? [subpath]
        : [main, main && `${main}.js`, main && `${main}/index.js`, 'index.js']
  for (const candidate of candidates) {
    if (typeof candidate !== 'string') continue
    const file = join(folder, candidate)
    if ((await kindOf(file)) === 'file') return pathToFileURL(file)
  }
  throw new Error(
    `${folder} has no module${subpath === '.' ? '' : ` ${subpath}`} to load: see "exports" in its package.json`,
  )
}

interface PackageJson {
  readonly exports?: unknown
  readonly main?: string
}

async function packageJson(folder: string): Promise<PackageJson> {
  const file = join(folder, 'package.json')
  if ((await kindOf(file)) === undefined) return {}
  try {
    return JSON.parse(await readFile(file, 'utf8')) as PackageJson
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

function exported(exports: unknown, subpath: string): string | undefined {
  const bySubpath = isObject(exports) && Object.keys(exports).some((key) => key.startsWith('.'))
  if (bySubpath) return chosen((exports as Record<string, unknown>)[subpath])
  return subpath === '.' ? chosen(exports) : undefined
}

/** Returns the target of the first matching condition. */
function chosen(target: unknown): string | undefined {
  if (typeof target === 'string') return target
  const branches = Array.isArray(target)
    ? target
    : isObject(target)
      ? Object.entries(target)
          .filter(([condition]) => CONDITIONS.includes(condition))
          .map(([, branch]) => branch)
      : []
  for (const branch of branches) {
    const found = chosen(branch)
    if (found !== undefined) return found
  }
  return undefined
}

async function kindOf(path: string): Promise<'file' | 'folder' | undefined> {
  const found = await stat(path).catch(() => undefined)
  if (!found) return undefined
  return found.isDirectory() ? 'folder' : 'file'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
