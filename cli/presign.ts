import { presignQuery, uriEncode } from '../common/sigv4.js'
import { type Config, ConfigError } from './config/config.js'
import { endpointOf, findEndpoint, isEndpoint, localEndpoint, NO_ENDPOINT, signerOf } from './running.js'

interface PresignFlags {
  readonly expires: string
  readonly method: string
  readonly endpointUrl?: string
  readonly profile?: string
}

const METHODS = ['GET', 'HEAD', 'PUT', 'DELETE']
const MAX_SECONDS = 604_800

/**
 * `dealgate presign s3://bucket/key`: prints a presigned URL. Requires no running server. That of a profile with
 * temporary credentials ends with these.
 */
export async function presign(config: Config, url: string, own: PresignFlags): Promise<void> {
  const { bucket, key, expires, method } = checked(url, own)
  const { sessionToken, endpoint: named, ...keys } = await signerOf(config, own.profile)
  // Nothing is sent to it, so the default port may be meant.
  const at = findEndpoint(config, own.endpointUrl ?? named) ?? localEndpoint(config)
  const endpoint = endpointOf(config, at)
  const path = `${endpoint.pathname.replace(/\/$/, '')}/${bucket}/${key}`
  const query = presignQuery({
    brand: 'Amz',
    method,
    path,
    host: endpoint.host,
    ...(sessionToken !== undefined && { query: [['X-Amz-Security-Token', sessionToken] as const] }),
    ...keys,
    expires,
    now: new Date(),
  })
  process.stdout.write(`${endpoint.origin}${uriEncode(path, true)}?${query}\n`)
}

function checked(url: string, own: PresignFlags) {
  const problems: string[] = []
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/s.exec(url) ?? []
  if (bucket === undefined || key === undefined) problems.push(`${url} must have the form s3://bucket/key`)
  const expires = /^\d{1,6}$/.test(own.expires) ? Number(own.expires) : 0
  if (expires < 1 || expires > MAX_SECONDS) {
    problems.push(`--expires must be a whole number of seconds from 1 to ${MAX_SECONDS}, not ${own.expires}`)
  }
  const method = own.method.toUpperCase()
  if (!METHODS.includes(method)) problems.push(`--method must be one of ${METHODS.join(', ')}, not ${own.method}`)
  if (own.endpointUrl !== undefined && !isEndpoint(own.endpointUrl)) problems.push(NO_ENDPOINT)
  if (problems.length > 0 || bucket === undefined || key === undefined) throw new ConfigError(problems)
  return { bucket, key, expires, method }
}
