import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** A folder of a bucket of an S3 store. */
export interface S3Location {
  /** Origin. */
  readonly endpoint: string
  /** True where the URL names no endpoint, which is then that of AWS. */
  readonly isAws: boolean
  readonly region: string
  readonly bucket: string
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string
}

const PARAMETERS: readonly string[] = ['endpoint', 'region']

/**
 * Parses `s3://bucket/prefix?endpoint=https://host:port&region=us-east-1`. Without an endpoint it is that of AWS. Throws
 * RangeError, also for credentials in the URL.
 */
export function parseS3Url(text: string): S3Location {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 's3:' || url.host === '')
    throw new RangeError('must be like s3://bucket/prefix?endpoint=https://host')
  if (url.username !== '' || url.password !== '') {
    throw new RangeError(
      'must not contain credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file',
    )
  }
  for (const name of url.searchParams.keys()) {
    if (!PARAMETERS.includes(name)) throw new RangeError(`has the unknown parameter ${name}`)
  }
  const region = url.searchParams.get('region') ?? 'us-east-1'
  const given = url.searchParams.get('endpoint')
  const endpoint = URL.canParse(given ?? '') ? new URL(given as string) : undefined
  const isOrigin = endpoint && /^https?:$/.test(endpoint.protocol) && endpoint.href === `${endpoint.origin}/`
  if (given !== null && !isOrigin) throw new RangeError('must have an endpoint like https://host:port')
  return {
    endpoint: endpoint?.origin ?? `https://s3.${region}.amazonaws.com`,
    isAws: given === null,
    region,
    bucket: url.hostname,
    prefix: decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, ''),
  }
}

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

/** The variables that AWS clients read, as far as they count here. */
export const AWS_VARIABLES = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_PROFILE',
] as const

export type AwsVariables = { readonly [Name in (typeof AWS_VARIABLES)[number]]?: string | undefined }

/**
 * Reads the credentials where AWS clients look for them: the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
 * AWS_SESSION_TOKEN, or the profile AWS_PROFILE of the credentials file. Throws RangeError.
 * @param file of that form, which goes before the variables
 * @param location what they are for
 */
export function readS3Credentials(
  file: string | undefined,
  variables: AwsVariables,
  location: Pick<S3Location, 'bucket' | 'endpoint' | 'isAws'>,
): S3Credentials {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
  } = variables
  if (file === undefined && accessKeyId && secretAccessKey) {
    return { accessKeyId, secretAccessKey, sessionToken: sessionToken || undefined }
  }
  const path = file ?? (variables.AWS_SHARED_CREDENTIALS_FILE || join(homedir(), '.aws', 'credentials'))
  const profile = profileOf(path, variables.AWS_PROFILE || 'default')
  const id = profile?.get('aws_access_key_id')
  const secret = profile?.get('aws_secret_access_key')
  if (!id || !secret) {
    throw new RangeError(
      `${placeOf(location)} There are no credentials for it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a profile into ${path}.`,
    )
  }
  return { accessKeyId: id, secretAccessKey: secret, sessionToken: profile?.get('aws_session_token') }
}

/** A URL without endpoint is rarely meant for AWS by those who have no credentials of AWS. */
function placeOf({ bucket, endpoint, isAws }: Pick<S3Location, 'bucket' | 'endpoint' | 'isAws'>): string {
  return isAws
    ? `The URL of the store of bodies names no endpoint, so that the bucket ${bucket} is one of AWS (${endpoint}): for another store, use s3://${bucket}?endpoint=https://host:port (--bodies).`
    : `The bodies of objects go to the bucket ${bucket} at ${endpoint} (--bodies).`
}

function profileOf(path: string, name: string): ReadonlyMap<string, string> | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  let current = ''
  const members = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const section = /^\s*\[\s*(?:profile\s+)?([^\]]*?)\s*\]/.exec(line)
    const member = /^\s*([a-z_]+)\s*=\s*(.*?)\s*$/.exec(line)
    if (section) current = section[1] ?? ''
    else if (member && current === name) members.set(member[1] ?? '', member[2] ?? '')
  }
  return members
}
