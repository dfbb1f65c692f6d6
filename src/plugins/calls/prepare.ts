import { createHash } from 'node:crypto'
import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Context } from '../../api/context.js'
import type { Caller, Proof } from '../../api/identity.js'
import type { CallFacts, Document } from '../../api/operation.js'
import type { Resource, S3Request } from '../../api/request.js'
import { columnsOf } from './format.js'
import { type FrameQuery, readBody, readFrameQuery, readQuery } from './read-body.js'
import {
  checked,
  invalidArgument,
  isPlainList,
  normalized,
  type ObjectShape,
  plainNames,
  type Shape,
  shapeOf,
} from './shape.js'

const NOTHING = z.strictObject({})

export interface CallInput {
  readonly body: Document
  readonly query: Document
  readonly frame: FrameQuery
  /** `Force` in the body of a call that spends. */
  readonly force: boolean
}

export interface PreparedCall {
  readonly shape: Shape
  readonly root: string
  readonly parameters: readonly string[]
  /** Throws InvalidArgument, InvalidRequest, MalformedXML, EntityTooLarge. */
  read(request: S3Request): Promise<CallInput>
}

/**
 * Computes shapes at their first use, because a server has 200 of them and most starts need few: `checkShapes` computes
 * all of a call.
 * @throws Error for a declaration that contradicts itself
 */
export function prepare(call: CallFacts): PreparedCall {
  const reads = call.on.method === 'GET'
  const members = namesOf(call, 'body', call.body)
  const ownsForce = members.includes('Force')
  const aliases = aliasesOf(call, members)
  const queryShape = () => objectShape(call, 'query', call.query)
  const bodyShape = () => {
    const declared = objectShape(call, 'body', call.body)
    return call.spends && !ownsForce ? withForce(declared) : declared
  }
  const parameters = namesOf(call, 'query', call.query)
  checkPages(call)
  if (call.csv) columnsOf(shapeOf(call.result, 'output'), call.csv.list)

  async function readDocument(request: S3Request): Promise<{ body: Document; force: boolean }> {
    if (reads || call.pass) return { body: {}, force: false }
    const { Force, ...others } = (await readBody(request, bodyShape(), aliases)) as Document
    const given = ownsForce && Force !== undefined ? { ...others, Force } : others
    return { body: await checked(call.body ?? NOTHING, given), force: Force === true }
  }

  return {
    get shape() {
      return shapeOf(call.result, 'output')
    },
    root: call.root ?? `${call.name}Result`,
    parameters,
    async read(request) {
      const frame = readFrameQuery(request, parameters)
      const asked = await checked(call.query ?? NOTHING, readQuery(request, queryShape(), call.on.subresource))
      return { frame, query: asked, ...(await readDocument(request)) }
    },
  }
}

/**
 * Throws Error unless `pages` names a list in the result. The members for paging are undeclared, because the frame adds
 * them.
 */
function checkPages({ name, pages, result }: CallFacts): void {
  if (pages === undefined || isPlainList(result, pages)) return
  const shape = shapeOf(result, 'output')
  if (shape.kind === 'object' && shape.members.get(pages)?.shape.kind === 'list') return
  throw new Error(`${name}: "${pages}" of its result is not a list`)
}

export function checkShapes(call: CallFacts): void {
  objectShape(call, 'query', call.query)
  objectShape(call, 'body', call.body)
  shapeOf(call.result, 'output')
}

/** Names of the members of a schema, which must be an object. */
function namesOf(call: CallFacts, what: string, schema: z.ZodType = NOTHING): readonly string[] {
  return plainNames(schema) ?? [...objectShape(call, what, schema).members.keys()]
}

function objectShape(call: CallFacts, what: string, schema: z.ZodType = NOTHING): ObjectShape & Shape {
  const shape = shapeOf(schema, 'input')
  if (shape.kind !== 'object') throw new Error(`${call.name}: the schema of its ${what} must be an object`)
  return shape
}

function withForce(shape: ObjectShape & Shape): ObjectShape & Shape {
  const member = { shape: { kind: 'boolean', nullable: false }, required: false } as const
  return {
    ...shape,
    members: new Map([...shape.members, ['Force', member]]),
    names: new Map([...shape.names, [normalized('Force'), 'Force']]),
  }
}

/** Aliases by their normalized names. */
function aliasesOf(call: CallFacts, members: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(call.aliases ?? {}).map(([alias, name]) => {
      if (!members.includes(name))
        throw new Error(`${call.name}: ${alias} is an alias of ${name}, which is not a member`)
      return [normalized(alias), name]
    }),
  )
}

/**
 * Throws AccessDenied unless the caller may make this call; see `ownRules` of CallDeclaration. The caller's rights also
 * restrict what the call then asks of the gateway.
 */
export async function authorize(
  call: Pick<CallFacts, 'name' | 'on' | 'access' | 'presignable' | 'ownRules'>,
  request: S3Request<Resource>,
  context: Pick<Context, 'caller' | 'checks'>,
): Promise<void> {
  if (context.caller?.presigned && !call.presignable) {
    throw new S3Error('AccessDenied', {
      message: `A presigned URL cannot be used for ${call.name}: sign the request in its headers.`,
    })
  }
  // The server lets no other unsigned request pass than one with a token for the service behind the call.
  if (call.ownRules || (call.access === 'bearer' && !context.caller)) return
  const { bucket, key } = request
  if (bucket === undefined || call.on.method !== 'GET')
    await context.checks.requireAction(`${request.plugin}:${call.name}`, { bucket, key })
  if (bucket === undefined) return
  if (key === undefined) context.checks.requireWholeBucket(bucket, 'read')
  else context.checks.requireKey(bucket, key, 'read')
}

/**
 * Throws AccessDenied for a POST whose signature does not cover the body: the body determines what is done and paid,
 * and any holder of the request could replace it.
 */
export function requireSignedBody({ name, on }: Pick<CallFacts, 'name' | 'on'>, caller: Caller | undefined): void {
  if (on.method !== 'POST') return
  const payload = caller?.payload
  const unsigned = payload?.kind === 'unsigned' || (payload?.kind === 'chunked' && !payload.signing)
  if (!unsigned) return
  throw new S3Error('AccessDenied', {
    message: `${name} accepts only a body that the signature covers: send its SHA-256 in x-amz-content-sha256, not UNSIGNED-PAYLOAD.`,
  })
}

const NAMES = ['x-amz-client-token', 'idempotency-key'] as const

/**
 * Reads `x-amz-client-token`, from a header or the query, or the header `Idempotency-Key`: 1 to 64 printable ASCII
 * characters. A token decides whether a request is a new one, so it must be signed: otherwise an observer of a request
 * could replay it as a new one.
 * @throws InvalidArgument; AccessDenied for a header that the signature does not cover
 */
export function readClientToken(
  { headers, query }: Pick<S3Request, 'headers' | 'query'>,
  proof: Proof | undefined,
): string | undefined {
  const given = NAMES.flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [{ name, value: String(value) }]
  })
  const unsigned = given.find(({ name }) => !proof?.headers.includes(name))
  if (unsigned) {
    throw new S3Error('AccessDenied', {
      message: `The header ${unsigned.name} is not signed. Name it in SignedHeaders, or leave it out.`,
      fields: { HeadersNotSigned: unsigned.name },
    })
  }
  const tokens = [...given, ...ofQuery(query)]
  for (const { name, value } of tokens) {
    if (!/^[ -~]{1,64}$/.test(value)) throw invalidArgument(name, 'must be 1 to 64 printable ASCII characters', value)
  }
  const [first] = tokens
  const other = tokens.find(({ value }) => value !== first?.value)
  if (first && other) throw invalidArgument(other.name, `differs from ${first.name}: send one of them`)
  return first?.value
}

function ofQuery({ entries }: S3Request['query']) {
  return entries.flatMap(([name, value]) => (name.toLowerCase() === NAMES[0] ? [{ name, value }] : []))
}

/** Hex SHA-256 of JSON values, independent of the order of their members. */
export function hashOf(...values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values, sorted)).digest('hex')
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Default and longest time that a call waits for its job, ms. */
const DEFAULT_WAIT_MS = 20_000

export const MAX_WAIT_MS = 300_000

interface Preference {
  readonly waitMs: number
  /** Value of Preference-Applied; undefined if the request stated no preference. */
  readonly applied: string | undefined
}

/**
 * Reads `Prefer: wait=10` or `Prefer: respond-async`. Ignores unknown preferences, as
 * https://www.rfc-editor.org/rfc/rfc7240#section-2 requires.
 */
export function readPrefer(header: string | string[] | undefined): Preference {
  const preferences = String(header ?? '')
    .split(',')
    .map((one) => (one.split(';')[0] ?? '').trim().toLowerCase())
  const asked = preferences.map((one) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(one)?.[1]).find(Boolean)
  if (asked !== undefined) {
    const waitMs = Math.min(Number(asked) * 1000, MAX_WAIT_MS)
    return { waitMs, applied: `wait=${waitMs / 1000}` }
  }
  if (preferences.includes('respond-async')) return { waitMs: 0, applied: 'respond-async' }
  return { waitMs: DEFAULT_WAIT_MS, applied: undefined }
}
