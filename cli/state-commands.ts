import { createLogger } from '../common/log.js'
import { BodyError } from '../services/store/bodies.js'
import { parseS3Url } from '../services/store/s3-location.js'
import { acceptLoss } from '../src/state/open-backend.js'
import { Failure, print } from './command.js'
import { type Config, ConfigError } from './config/config.js'
import { columns, SecretReader } from './keys/key-commands.js'
import { bytesText, ProgressLine } from './progress.js'
import type { Changed } from './running.js'
import { servicesFolder, storeOf } from './serve/gateway.js'

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

/**
 * `dealgate state copy`: copies the tables of the services between a data folder and PostgreSQL, or moves the bodies of
 * objects between a data folder and an S3 store.
 */
export async function copyState(config: Config, { from, to }: CopyFlags): Promise<Changed> {
  if (from === undefined || to === undefined) throw new ConfigError(['--from and --to are required'])
  const secrets = new SecretReader()
  const places = [placeOf('--from', await secrets.read(from)), placeOf('--to', await secrets.read(to))] as const
  secrets.close()
  try {
    await (places.some(isStore) ? moveBodies(config, ...places) : copyTables(config, ...places))
    return {}
  } catch (error) {
    const isKnown = error instanceof RangeError || error instanceof BodyError
    throw isKnown ? new Failure(error.message, { cause: error }) : error
  }
}

async function copyTables(config: Config, from: string, to: string): Promise<void> {
  const progress = new ProgressLine()
  const { copyServices } = await import('../services/databases.js')
  try {
    const copied = await copyServices(from, to, ({ step, service, table, rows }) =>
      progress.show(() => `${step} ${service}, ${table}: ${rows} rows`),
    )
    progress.clear()
    print(
      config,
      copied,
      columns([
        ['SERVICE', 'TABLE', 'ROWS', 'SHA-256'],
        ...copied.map(({ service, table, rows, hash }) => [service, table, String(rows), hash.slice(0, 16)]),
      ]),
    )
  } finally {
    progress.clear()
  }
}

async function moveBodies(config: Config, from: string, to: string): Promise<void> {
  const [data, url] = isStore(to) ? [from, to] : [to, from]
  if (isDatabase(data) || isStore(data))
    throw new ConfigError(['Bodies go between a data folder and s3://…: name the database with --database'])
  const progress = new ProgressLine()
  const { copyBodies } = await import('../services/databases.js')
  try {
    const move = {
      data,
      database: config.database,
      store: storeOf(url, config.bodiesCredentialsFile),
      to: isStore(to) ? 'store' : 'folder',
    } as const
    const { bodies, bytes, damaged } = await copyBodies(move, ({ bodies, bytes }) =>
      progress.show(() => `${bodies} bodies, ${bytesText(bytes)}`),
    )
    progress.clear()
    print(
      config,
      { bodies, bytes, damaged },
      columns([
        ['BODIES', 'BYTES', 'DAMAGED'],
        [String(bodies), String(bytes), String(damaged.length)],
      ]),
    )
    if (damaged.length === 0) return
    const named = damaged.map(({ bucket, key, name, reason }) => `${bucket ?? ''}/${key ?? name}: ${reason}`)
    throw new Failure(`${damaged.length} bodies are lost or damaged, and stay as they are:\n${named.join('\n')}`)
  } finally {
    progress.clear()
  }
}

function isStore(place: string): boolean {
  return place.startsWith('s3://')
}

function isDatabase(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place)
}

/** The data folder of the services, the URL of a database, or that of a folder of an S3 store. */
function placeOf(flag: string, given: string): string {
  if (isDatabase(given) && URL.canParse(given)) return given
  if (isStore(given)) return storeUrl(flag, given)
  if (given === '' || given.includes('://'))
    throw new ConfigError([
      `${flag} must be a data folder, or like postgres://user@host/database or s3://bucket/prefix`,
    ])
  return servicesFolder({ data: given })
}

function storeUrl(flag: string, given: string): string {
  try {
    parseS3Url(given)
    return given
  } catch (error) {
    throw new ConfigError([`${flag} ${(error as Error).message}`])
  }
}
