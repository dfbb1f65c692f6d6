import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { VERSION_FILE } from '../common/files/data-version.js'
import { Failure } from './command.js'
import { type Config, isGiven, type OptionName } from './config/config.js'
import type { CommandDeclaration } from './declaration.js'
import { serversOfUser } from './known-servers.js'

/** What the folder of a server has, from its first start on, or from a restore. */
const MARKS = [VERSION_FILE, 'keys.json', 'credentials.json', 'encryption.keys', 'running.json', 'services', 'state']

/**
 * Refuses a command about a data folder where there is none: what it would write there, no server reads.
 * @param flags those of the command itself
 * @throws Failure that names the servers that run; the system error for a folder that may not be read
 */
export function requireDataFolder(
  config: Config,
  flags: Readonly<Record<string, unknown>>,
  { inData }: Pick<CommandDeclaration, 'inData'>,
): void {
  if (inData === undefined || inData.some((name) => isElsewhere(config, flags, name))) return
  if (isDataFolder(config.data)) return
  const servers = serversOfUser().filter(({ data }) => data !== resolve(config.data))
  const [first] = servers
  const found = servers.map(({ data, endpoint, gateway, pid }) => `${data} (${endpoint ?? gateway}, process ${pid})`)
  const remedy =
    first === undefined
      ? 'Start dealgate once, or name its data folder by --data.'
      : servers.length === 1
        ? `A dealgate runs with the data folder ${found[0]}: add --data ${first.data}`
        : `Servers run with these data folders, of which --data names one: ${found.join(', ')}`
  throw new Failure(
    `${resolve(config.data)} is no data folder of dealgate, so that nothing was read or written there. ${remedy}`,
  )
}

/** An option or a flag names what the command works on, in place of the data folder. */
function isElsewhere(config: Config, flags: Readonly<Record<string, unknown>>, name: string): boolean {
  return flags[name] !== undefined || (name in config && isGiven(config, name as OptionName))
}

function isDataFolder(folder: string): boolean {
  try {
    statSync(folder)
  } catch (error) {
    // A folder that exists and may not be looked at is another mistake, with another remedy.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
  return MARKS.some((name) => existsSync(join(folder, name)))
}
