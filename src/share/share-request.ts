import type { Context } from '../context.js'
import { S3Error } from '../errors/s3-error.js'
import type { S3Request } from '../request/s3-request.js'
import { parseXml } from '../xml.js'

/** Longest life of a link, seconds: the gateway silently makes it the life of a link that asks for more. */
export const MAX_EXPIRY_S = 604_800
const DEFAULT_EXPIRY_S = 3600

export type Format = 'json' | 'xml'

export interface ShareRequest {
  /** Seconds. */
  readonly expiry: number
  /** In which the answer goes out. */
  readonly format: Format
}

/**
 * How long a link is to live: `expiry` in the query, or in the body as `{"Expiry": 3600}`, `<ShareLinkRequest><Expiry>3600</Expiry></ShareLinkRequest>` or
 * `Expiry=3600`. Throws InvalidArgument, MalformedXML, InvalidRequest.
 */
export async function readShareRequest(request: S3Request<'object'>, context: Context): Promise<ShareRequest> {
  const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
  const inBody = await readBody(bytes)
  const inQuery = request.query.get('expiry')
  requireOnce(request.query.entries.filter(([name]) => name === 'expiry').length)
  if (inQuery !== undefined && inBody.expiry !== undefined) {
    throw new S3Error('InvalidRequest', { message: 'Expiry is given in the query or in the body, not in both.' })
  }
  return { expiry: seconds(inQuery ?? inBody.expiry), format: formatOf(request, inBody.format) }
}

function seconds(text: string | undefined): number {
  if (text === undefined) return DEFAULT_EXPIRY_S
  const number = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= MAX_EXPIRY_S) return number
  throw new S3Error('InvalidArgument', {
    message: `Expiry must be a whole number of seconds from 1 to ${MAX_EXPIRY_S} (seven days).`,
    fields: { ArgumentName: 'Expiry', ArgumentValue: text.slice(0, 100) },
  })
}

interface Body {
  readonly expiry?: string
  readonly format?: Format
}

/** By its first character: `curl -d` says that everything is a form. */
async function readBody(bytes: Buffer): Promise<Body> {
  const text = bytes.toString('utf8').trim()
  if (text === '') return {}
  if (text.startsWith('{')) return { expiry: onlyExpiry(Object.entries(parseJson(text))), format: 'json' }
  if (text.startsWith('<')) {
    const { children } = await parseXml(bytes, 'ShareLinkRequest')
    const members = [...children].flatMap(([name, nodes]) => nodes.map(({ text }) => [name, text] as const))
    return { expiry: onlyExpiry(members), format: 'xml' }
  }
  return { expiry: onlyExpiry([...new URLSearchParams(text)]) }
}

function parseJson(text: string): object {
  try {
    return JSON.parse(text) as object
  } catch (cause) {
    throw new S3Error('InvalidRequest', { message: 'The body is not valid JSON.', cause })
  }
}

function requireOnce(times: number): void {
  if (times > 1)
    throw new S3Error('InvalidArgument', {
      message: 'Expiry is given more than once.',
      fields: { ArgumentName: 'Expiry' },
    })
}

/** The gateway's own spelling, `expiry`, is taken too. */
function onlyExpiry(members: readonly (readonly [string, unknown])[]): string | undefined {
  for (const [name] of members) {
    if (name !== 'Expiry' && name !== 'expiry') {
      throw new S3Error('InvalidArgument', {
        message: 'A request for a share link has the member Expiry and no other.',
        fields: { ArgumentName: name.slice(0, 100) },
      })
    }
  }
  requireOnce(members.length)
  const value = members[0]?.[1]
  return value === undefined ? undefined : String(value)
}

function formatOf({ query, headers }: S3Request<'object'>, sent: Format | undefined): Format {
  const asked = query.get('format')
  if (asked === 'json' || asked === 'xml') return asked
  if (asked !== undefined) {
    throw new S3Error('InvalidArgument', { message: 'format is json or xml.', fields: { ArgumentName: 'format' } })
  }
  const accept = headers.accept ?? ''
  if (/\bapplication\/json\b/i.test(accept)) return 'json'
  if (/\b(application|text)\/xml\b/i.test(accept)) return 'xml'
  return sent ?? 'xml'
}
