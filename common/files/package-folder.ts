import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The folder of this package, with its package.json and its licence: its code may run from the sources' modules or from
 * the bundle.
 */
export function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'LICENSE')) && folder !== dirname(folder)) folder = dirname(folder)
  return folder
}

let known: string | undefined

export function version(): string {
  known ??= JSON.parse(readFileSync(join(packageFolder(), 'package.json'), 'utf8')).version as string
  return known
}
