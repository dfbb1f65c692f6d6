import { presignQuery, uriEncode } from '../common/sigv4.js'
import { type Config, ConfigError } from './config/config.js'
import { schemeOf } from './config/scheme.js'
import { Failure } from './failure.js'
import { findKeys } from './keys/keys.js'
import { awsFiles, readAwsProfile } from './login/aws-profile.js'
import type { PresignFlags } from './program.js'

const METHODS = ['GET', 'HEAD', 'PUT', 'DELETE']
const MAX_SECONDS = 604_800

/**
 * `dealgate presign s3://bucket/key`: prints a presigned URL. Requires no running server. That of a profile with
 * temporary credentials ends with these.
 */
export async function presign(config: Config, url: string, own: PresignFlags): Promise<void> {
  const profile = own.profile === undefined ? undefined : readAwsProfile(awsFiles(), own.profile)
  const { bucket, key, expires, method, endpoint } = checked(config, url, {
    ...own,
    endpointUrl: own.endpointUrl ?? profile?.endpoint,
  })
  const keys = profile ?? (await ownKeys(config))
  const path = `${endpoint.pathname.replace(/\/$/, '')}/${bucket}/${key}`
  const query = presignQuery({
    brand: 'Amz',
    method,
    path,
    host: endpoint.host,
    ...(profile?.sessionToken !== undefined && { query: [['X-Amz-Security-Token', profile.sessionToken] as const] }),
    accessKeyId: keys.accessKeyId,
    secretAccessKey: keys.secretAccessKey,
    region: profile?.region ?? config.region,
    expires,
    now: new Date(),
  })
  process.stdout.write(`${endpoint.origin}${uriEncode(path, true)}?${query}\n`)
}

async function ownKeys(config: Config) {
  const keys = await findKeys(config)
  if (keys) return { accessKeyId: keys.accessKey, secretAccessKey: keys.secretKey }
  throw new Failure(
    `There is no key pair in ${config.data} yet. Start dealgate once, or give --access-key and --secret-key.`,
  )
}

type Asked = Omit<PresignFlags, 'endpointUrl'> & { readonly endpointUrl: string | undefined }

function checked(config: Config, url: string, own: Asked) {
  const problems: string[] = []
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/s.exec(url) ?? []
  if (bucket === undefined || key === undefined) problems.push(`${url} must have the form s3://bucket/key`)
  const expires = /^\d{1,6}$/.test(own.expires) ? Number(own.expires) : 0
  if (expires < 1 || expires > MAX_SECONDS) {
    problems.push(`--expires must be a whole number of seconds from 1 to ${MAX_SECONDS}, not ${own.expires}`)
  }
  const method = own.method.toUpperCase()
  if (!METHODS.includes(method)) problems.push(`--method must be one of ${METHODS.join(', ')}, not ${own.method}`)
  const endpoint = endpointOf(config, own.endpointUrl)
  if (!endpoint) problems.push('--endpoint-url must be an http or https URL without a query')
  if (problems.length > 0 || !endpoint || bucket === undefined || key === undefined) throw new ConfigError(problems)
  return { bucket, key, expires, method, endpoint }
}

/** The endpoint of `--endpoint-url`, or of this machine; undefined for a text that is none. */
export function endpointOf(config: Config, given: string | undefined): URL | undefined {
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  const text = given ?? `${schemeOf(config)}://${host}:${config.port}`
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  return /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' ? url : undefined
}
