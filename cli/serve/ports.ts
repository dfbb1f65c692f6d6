import { once } from 'node:events'
import { createServer } from 'node:net'
import { describeError, Failure, listenFailure } from '../command.js'
import { type Config, ConfigError, flagOf, isGiven, type OptionName, options, portAt } from '../config/config.js'
import { findServer } from '../running.js'

/** Where a start listens. */
interface Place {
  readonly host: string
  /** 0 for a free one. */
  readonly port: number
  /** The options that change it. */
  readonly by: { readonly host: OptionName; readonly port: OptionName }
}

/** The bases that a refusal proposes are so far apart. */
const STEP = 500
const PROPOSALS = 20

/**
 * Looks whether every port of a start can be listened on, before anything starts, so that one message names all that
 * cannot. Another process may still take one until it is used.
 * @throws Failure, and ConfigError for a port that two options name
 */
export async function requirePorts(config: Config, what: 'server' | 'services'): Promise<void> {
  const places = placesOf(config, what).filter(({ port }) => port !== 0)
  requireDifferent(places)
  const errors = await Promise.all(places.map(probe))
  const taken = places.filter((_, i) => errors[i]?.code === 'EADDRINUSE')
  const others = places.flatMap((place, i) => {
    const error = errors[i]
    if (error === undefined || error.code === 'EADDRINUSE') return []
    return describeError(listenFailure(error, place, { host: flagOf(place.by.host), port: flagOf(place.by.port) }))
  })
  // The console has a port by default, which must not keep a server from starting.
  const isOptional = ({ by }: Place) => by.port === 'consolePort' && !isGiven(config, 'consolePort')
  if (others.length === 0 && taken.every(isOptional)) return
  const texts = taken.length === 0 ? others : [...others, await conflict(config, what, taken)]
  throw new Failure(texts.join(' '), { cause: errors.find((error) => error !== undefined) })
}

/** The S3 port first: it is the one that users know. */
function placesOf(config: Config, what: 'server' | 'services'): readonly Place[] {
  const { host, port, consolePort, websitePort, metricsHost, metricsPort } = config
  const { gatewayHost, gatewayPort, platformHost, platformPort, paymentHost, paymentPort } = config
  const places: (Place | undefined)[] = [
    what === 'server' ? { host, port, by: { host: 'host', port: 'port' } } : undefined,
    what === 'server' && consolePort !== 'off'
      ? { host, port: consolePort, by: { host: 'host', port: 'consolePort' } }
      : undefined,
    config.gatewayUrl === undefined
      ? { host: gatewayHost, port: gatewayPort, by: { host: 'gatewayHost', port: 'gatewayPort' } }
      : undefined,
    config.gatewayUrl === undefined && config.platformUrl === undefined
      ? { host: platformHost, port: platformPort, by: { host: 'platformHost', port: 'platformPort' } }
      : undefined,
    config.gatewayUrl === undefined && config.paymentUrl === undefined
      ? { host: paymentHost, port: paymentPort, by: { host: 'paymentHost', port: 'paymentPort' } }
      : undefined,
    what === 'server' && websitePort !== 'off'
      ? { host, port: websitePort, by: { host: 'host', port: 'websitePort' } }
      : undefined,
    metricsPort === undefined
      ? undefined
      : { host: metricsHost, port: metricsPort, by: { host: 'metricsHost', port: 'metricsPort' } },
  ]
  return places.filter((place) => place !== undefined)
}

/**
 * Refuses one port twice: with all addresses of a machine and one of them, the second listener finds it in use, too.
 */
function requireDifferent(places: readonly Place[]): void {
  const isAll = (host: string) => host === '0.0.0.0' || host === '::'
  const problems = places.flatMap((one, i) =>
    places
      .slice(i + 1)
      .filter(({ host, port }) => port === one.port && (host === one.host || isAll(host) || isAll(one.host)))
      .map(
        ({ by }) => `${flagOf(one.by.port)} and ${flagOf(by.port)} are both ${one.port}: give one of them another port`,
      ),
  )
  if (problems.length > 0) throw new ConfigError(problems)
}

/** Why nothing can listen there; undefined if something can. */
async function probe({ host, port }: Pick<Place, 'host' | 'port'>): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer()
  try {
    // `exclusive`: a worker of a cluster would ask its supervisor, which listens already.
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return undefined
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
}

async function conflict(config: Config, what: 'server' | 'services', taken: readonly Place[]): Promise<string> {
  const list = taken.map(({ host, port, by }) => `${host}:${port} (${flagOf(by.port)})`).join(', ')
  const [first, ...more] = taken.map(({ by }) => flagOf(by.port))
  const say =
    more.length === 0
      ? `is in use by another process. Choose another port with ${first}, or 0 for a free one`
      : 'are in use by other processes. Choose other ports with these options, or 0 for free ones'
  const base = await freeBase(config, what, taken)
  const all = base === undefined ? '' : `; ${flagOf('portBase')} ${base} moves all ports to free ones`
  return `${list} ${say}${all}.${running(config)}`
}

/** A base that would move all ports that are taken to free ones; undefined without one. */
async function freeBase(config: Config, what: 'server' | 'services', taken: readonly Place[]) {
  const isMoved = ({ port, by }: Place) => port === portAt(by.port, config.portBase)
  if (!taken.every(isMoved)) return undefined
  for (let n = 1; n <= PROPOSALS; n++) {
    const base = options.port.default + n * STEP
    const moved = placesOf(config, what)
      .filter(isMoved)
      .map(({ host, by }) => ({ host, port: portAt(by.port, base) ?? 0 }))
    const errors = await Promise.all(moved.map(probe))
    if (errors.every((error) => error === undefined)) return base
  }
  return undefined
}

/** The server that has the data folder, which has its ports, too, unless it was given others. */
function running(config: Config): string {
  const server = findServer(config.data)
  if (server === undefined) return ''
  const where = server.endpoint === undefined ? '' : ` at ${server.endpoint}`
  return ` A dealgate${where} (process ${server.pid}) runs with the data folder ${config.data}: a second one needs another with --data.`
}
