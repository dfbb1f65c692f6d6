import { z } from 'zod'
import type { S3Request } from '../../../request/s3-request.js'
import { checked } from '../codec/check.js'
import { normalized } from '../codec/names.js'
import { isPlainList, plainNames } from '../codec/plain-names.js'
import { readBody } from '../codec/read-body.js'
import { type FrameQuery, readFrameQuery, readQuery } from '../codec/read-query.js'
import { type ObjectShape, type Shape, shapeOf } from '../codec/shape.js'
import { columnsOf } from '../codec/write-csv.js'
import type { CallFacts, Document } from './call.js'

const NOTHING = z.strictObject({})

/** The content of a request, parsed and checked. */
export interface Asked {
  readonly body: Document
  readonly query: Document
  readonly frame: FrameQuery
  /** `Force` in the body of a call that spends. */
  readonly force: boolean
}

/** The parts of a call that are computed once. */
export interface PreparedCall {
  /** Shape of the result. */
  readonly shape: Shape
  readonly root: string
  /** Names of the call's own query parameters. */
  readonly parameters: readonly string[]
  /** Throws InvalidArgument, InvalidRequest, MalformedXML, EntityTooLarge. */
  read(request: S3Request): Promise<Asked>
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
    parameters: namesOf(call, 'query', call.query),
    async read(request) {
      const frame = readFrameQuery(request)
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

/** Throws Error for two members whose names differ only in case, underscores and hyphens, at any depth of a schema. */
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
