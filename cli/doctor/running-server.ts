import { presignQuery } from '../../common/sigv4.js'
import { describeError, Failure } from '../command.js'
import type { Config } from '../config/config.js'
import { findKeys } from '../keys/keys.js'
import { problemIn } from '../readiness.js'
import { ownEndpoint } from '../running.js'
import { ANY, type Answered, ask, isRunning } from './gateway-mistakes.js'

const PATIENCE_MS = 10_000
/** Clients of S3 may be wrong by 15 minutes; temporary credentials and leases suffer earlier, s. */
const MUCH_SKEW = 60

/** Asks a running server whether it is ready, and for its clock. Undefined when none runs here. */
export async function checkServer(config: Config, endpointUrl?: string): Promise<Finding | undefined> {
  const server = await findServer(config, endpointUrl)
  if (server === undefined) return undefined
  const before = Date.now()
  const { status, headers, body } = await server.ask('/-/ready')
  const problem = problemIn(body)
  if (headers['x-amz-request-id'] === undefined)
    throw new Failure(
      `${server.url} answers ${status}, but not as dealgate does. Check the address and the proxies before it.`,
    )
  if (status !== 200) throw new Failure(`${server.url} is not ready: ${problem ?? `it answers ${status}`}`)
  const skew = skewOf(headers.date, (before + Date.now()) / 2)
  const warnings = [
    ...(problem === undefined ? [] : [problem]),
    ...(Math.abs(skew) > MUCH_SKEW
      ? [`its clock is ${Math.abs(skew)} s ${skew > 0 ? 'behind' : 'ahead of'} this one. Set both with NTP.`]
      : []),
  ]
  return { text: `${server.url} is ready; its clock is ${Math.abs(skew)} s from this one`, warnings }
}

/** Sends a signed request with the key pair of the options or the data folder. */
export async function checkRequests(config: Config, endpointUrl?: string): Promise<string | undefined> {
  const server = await findServer(config, endpointUrl)
  const keys = await findKeys(config)
  if (server === undefined || keys === undefined) return undefined
  const query = presignQuery({
    brand: 'Amz',
    method: 'GET',
    path: '/',
    host: new URL(server.url).host,
    accessKeyId: keys.accessKey,
    secretAccessKey: keys.secretKey,
    region: config.region,
    expires: 60,
    now: new Date(),
  })
  const { status, body } = await server.ask(`/?${query}`)
  if (status === 200) return `ListBuckets with ${keys.accessKey} is answered`
  const [, code = `status ${status}`] = /<Code>(.*?)<\/Code>/.exec(body) ?? []
  throw new Failure(`ListBuckets with ${keys.accessKey} is refused: ${code}. ${problemIn(body) ?? ''}`.trim())
}

interface Server {
  readonly url: string
  ask(path: string): Promise<Answered>
}

/** Throws Failure for an address that was given and does not answer. */
async function findServer(config: Config, endpointUrl: string | undefined): Promise<Server | undefined> {
  const own = ownEndpoint(config)
  if (endpointUrl === undefined && (own === undefined || !(await isRunning(config)))) return undefined
  const url = (endpointUrl ?? own ?? '').replace(/\/+$/, '')
  const tls = endpointUrl === undefined ? ANY : undefined
  return {
    url,
    ask: (path) =>
      ask(`${url}${path}`, { timeoutMs: PATIENCE_MS, tls }).catch((error) => {
        throw new Failure(`${url} does not answer: ${describeError(error)}`, { cause: error })
      }),
  }
}

function skewOf(date: string | undefined, now: number): number {
  const theirs = Date.parse(date ?? '')
  // The header has whole seconds.
  return Number.isNaN(theirs) ? 0 : Math.trunc((now - theirs) / 1000)
}

export interface Finding {
  readonly text: string
  /** Settings that work but should be changed, each with its remedy. */
  readonly warnings: readonly string[]
}
