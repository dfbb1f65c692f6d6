import { createLogger } from '../common/log.js'
import { acceptLoss } from '../state/open-backend.js'
import { Failure } from './command.js'
import { type Config, ConfigError } from './config/config.js'
import { columns, SecretReader } from './keys/key-commands.js'
import { ProgressLine } from './progress.js'
import type { Changed } from './running.js'
import { servicesFolder } from './serve/gateway.js'

interface CopyFlags {
  readonly from?: string
  readonly to?: string
}

const ACCEPTED =
  'The state store is accepted as it is. Running servers go on with it within ten seconds. Set public access blocks, lifecycle rules, CORS and tags again, and find out which deals were made before you ask for them again.\n'
const NOTHING = 'The state store is the one that belongs to the data folder: there is nothing to accept.\n'

export async function acceptState(config: Config): Promise<Changed> {
  const accepted = await acceptLoss({
    data: config.data,
    url: config.state,
    timeoutMs: config.stateTimeoutMs,
    log: createLogger({ level: 'silent' }),
  })
  process.stdout.write(accepted ? ACCEPTED : NOTHING)
  return {}
}

/** `dealgate state copy`: copies the tables of the services between a data folder and PostgreSQL. */
export async function copyState(config: Config, { from, to }: CopyFlags): Promise<Changed> {
  if (from === undefined || to === undefined) throw new ConfigError(['--from and --to are required'])
  const secrets = new SecretReader()
  const places = [placeOf('--from', await secrets.read(from)), placeOf('--to', await secrets.read(to))] as const
  secrets.close()
  const progress = new ProgressLine()
  const { copyServices } = await import('../services/databases.js')
  try {
    const copied = await copyServices(...places, ({ step, service, table, rows }) =>
      progress.show(() => `${step} ${service}, ${table}: ${rows} rows`),
    )
    progress.clear()
    process.stdout.write(
      config.print === 'json'
        ? `${JSON.stringify(copied)}\n`
        : columns([
            ['SERVICE', 'TABLE', 'ROWS', 'SHA-256'],
            ...copied.map(({ service, table, rows, hash }) => [service, table, String(rows), hash.slice(0, 16)]),
          ]),
    )
    return {}
  } catch (error) {
    throw error instanceof RangeError ? new Failure(error.message, { cause: error }) : error
  } finally {
    progress.clear()
  }
}

/** The data folder of the services, or the URL of a database. */
function placeOf(flag: string, given: string): string {
  if (/^postgres(ql)?:\/\//.test(given) && URL.canParse(given)) return given
  if (given === '' || given.includes('://'))
    throw new ConfigError([`${flag} must be a data folder, or like postgres://user@host/database`])
  return servicesFolder({ data: given })
}
